package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// jsonHelp is the contract about --json of ls and show.
const jsonHelp = `The JSON is a stable interface. A lock is an object with
  name           the lock's name; one that is not UTF-8 also has name_base64
  held           whether it is held; the following fields only if it is
  owner          the owner value of the lease
  host, pid, purpose, since, trace
                 what the holder says about itself, as far as it does; since
                 is when it asked for the lock, RFC 3339, by its own clock;
                 trace is the traceparent (W3C) that it asked in
  held_for_ms    milliseconds since the lock was granted, by the store's clock;
                 absent if the store cannot tell
  expires_in_ms  milliseconds until the lease ends unless it is renewed;
                 null if it never ends by itself
  token          the fencing token; absent if the store has none
  kind           "mutex", "semaphore" or "read-write"; the fields above are those
                 of the first holder, and these are about all of them:
  permits        how many permits a semaphore has
  holders        unless it is a mutex with one holder: an array of objects with the
                 fields from owner to token, slot (a number that no other holder has,
                 from 0), weight (how many permits it has) of a semaphore, also of one
                 that was resized to one permit, and mode ("reader" or "writer") of a
                 read-write lock
  undecided      if further leases may be held, which depends on nodes that do not
                 answer: an array of objects with the fields from owner to token
                 (expires_in_ms is the longest that the lease can be held unless it is
                 renewed), kind and permits, and slot, weight and mode as in holders.
                 If held is false, the lock is free only without this field
  broken         with show, if a lease was broken in the last day ("leasehold break"),
                 held or not: an object with owner, token, by, reason, at and now
  queue          with show, if anyone waits: an array of objects with position
                 (1 is next), owner, host, pid, purpose, trace and since (when it
                 began to wait) as above, and expires_in_ms (when its place ends unless
                 it is refreshed; null if it never ends by itself); at most 100
  nodes          for stores of several nodes, what each node answers: an array of
                 objects with node, outcome ("taken", "absent", "unreachable",
                 ...), owner and expires_in_ms if taken, and error if any
Fields may be added; none is renamed or removed.`

// stateJSON is a lock, as jsonHelp describes it.
type stateJSON struct {
	lockName
	Held bool `json:"held"`
	*heldJSON
	kindJSON
	Undecided []undecidedJSON `json:"undecided,omitempty"`
	Broken    *brokenJSON     `json:"broken,omitempty"`
	Queue     []placeJSON     `json:"queue,omitempty"`
	Nodes     []nodeJSON      `json:"nodes,omitempty"`
}

// kindJSON says what kind of lock is held.
type kindJSON struct {
	Kind    string        `json:"kind,omitempty"`
	Permits int64         `json:"permits,omitempty"`
	Holders []holdingJSON `json:"holders,omitempty"`
}

// holdingJSON is one of several holders.
type holdingJSON struct {
	heldJSON
	Slot   int64  `json:"slot"`
	Weight int64  `json:"weight,omitempty"`
	Mode   string `json:"mode,omitempty"`
}

// undecidedJSON is a lease that may be held.
type undecidedJSON struct {
	heldJSON
	Kind    string `json:"kind"`
	Permits int64  `json:"permits,omitempty"`
	Slot    *int64 `json:"slot,omitempty"`
	Weight  int64  `json:"weight,omitempty"`
	Mode    string `json:"mode,omitempty"`
}

func undecidedToJSON(h store.Holding) undecidedJSON {
	of := kindToJSON(h.Kind, []store.Holding{h})
	j := undecidedJSON{heldJSON: heldToJSON(h), Kind: of.Kind, Permits: of.Permits}
	for _, one := range of.Holders {
		j.Slot, j.Weight, j.Mode = &one.Slot, one.Weight, one.Mode
	}
	return j
}

type brokenJSON struct {
	Owner  string      `json:"owner"`
	Token  fence.Token `json:"token"`
	By     string      `json:"by,omitempty"`
	Reason string      `json:"reason,omitempty"`
	At     *time.Time  `json:"at,omitempty"`
	Now    bool        `json:"now"`
}

// lockName is the name of a lock. JSON cannot hold one that is not UTF-8.
type lockName struct {
	Name       string `json:"name"`
	NameBase64 string `json:"name_base64,omitempty"`
}

func lockNameOf(name string) lockName {
	n := lockName{Name: name}
	if !utf8.ValidString(name) {
		n.NameBase64 = base64.StdEncoding.EncodeToString([]byte(name))
	}
	return n
}

type heldJSON struct {
	holderJSON
	HeldFor *milliseconds `json:"held_for_ms,omitempty"`
	Expires milliseconds  `json:"expires_in_ms"`
	Token   fence.Token   `json:"token,omitempty"`
}

type placeJSON struct {
	Position int `json:"position"`
	holderJSON
	Expires milliseconds `json:"expires_in_ms"`
}

// holderJSON is a holder or a waiter.
type holderJSON struct {
	Owner   string     `json:"owner"`
	Host    string     `json:"host,omitempty"`
	PID     int        `json:"pid,omitempty"`
	Purpose string     `json:"purpose,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Trace   string     `json:"trace,omitempty"`
}

func holderToJSON(h store.Holder) holderJSON {
	return holderJSON{Owner: h.Owner, Host: h.Host, PID: h.PID, Purpose: h.Purpose, Since: utc(h.Since), Trace: h.Trace}
}

// utc returns nil for the zero time.
func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func heldToJSON(h store.Holding) heldJSON {
	j := heldJSON{holderToJSON(h.Holder), nil, milliseconds(h.ExpiresIn), h.Token}
	if held := milliseconds(h.HeldFor); held > 0 {
		j.HeldFor = &held
	}
	return j
}

func kindToJSON(k store.Kind, held []store.Holding) kindJSON {
	j := kindJSON{Kind: "mutex"}
	switch {
	case isOne(k, held):
		return j
	case k.IsMutex(): // the holders say the rest
	case k.Shared:
		j.Kind = "read-write"
	default:
		j.Kind, j.Permits = "semaphore", k.Limit
	}
	for _, h := range held {
		one := holdingJSON{heldJSON: heldToJSON(h), Slot: h.Slot}
		if k.Shared {
			one.Mode = modeOf(k, h)
		} else {
			one.Weight = h.Weight
		}
		j.Holders = append(j.Holders, one)
	}
	return j
}

type nodeJSON struct {
	Node    string        `json:"node"`
	Outcome string        `json:"outcome"`
	Owner   string        `json:"owner,omitempty"`
	Expires *milliseconds `json:"expires_in_ms,omitempty"`
	Error   string        `json:"error,omitempty"`
}

// milliseconds is the time until something expires. A negative value means never.
type milliseconds time.Duration

func (m milliseconds) MarshalJSON() ([]byte, error) {
	if m < 0 {
		return []byte("null"), nil
	}
	return json.Marshal(time.Duration(m).Milliseconds())
}

func toJSON(st store.State) stateJSON {
	j := stateJSON{lockName: lockNameOf(st.Name), Held: st.Held}
	if st.Held {
		held := st.Holdings()
		first := heldToJSON(held[0])
		j.heldJSON, j.kindJSON = &first, kindToJSON(st.Kind, held)
	}
	for _, h := range st.Undecided {
		j.Undecided = append(j.Undecided, undecidedToJSON(h))
	}
	if b := st.Broken; b != nil {
		j.Broken = &brokenJSON{Owner: b.Owner, Token: b.Token, By: b.By, Reason: b.Reason, At: utc(b.At), Now: b.Now}
	}
	for i, p := range st.Queue {
		j.Queue = append(j.Queue, placeJSON{i + 1, holderToJSON(p.Holder), milliseconds(p.ExpiresIn)})
	}
	for _, n := range st.Nodes {
		node := nodeJSON{Node: n.Node, Outcome: n.Outcome.String()}
		if n.Outcome == store.Taken {
			expires := milliseconds(n.ExpiresIn)
			node.Owner, node.Expires = n.Holder.Owner, &expires
		}
		if n.Err != nil {
			node.Error = safe(n.Err.Error())
		}
		j.Nodes = append(j.Nodes, node)
	}
	return j
}

// writeJSONLine writes v on one line.
func writeJSONLine(w io.Writer, v any) error {
	return encodeJSON(w, v, "")
}

func writeJSON(w io.Writer, v any) error { return encodeJSON(w, v, "  ") }

// encodeJSON writes v. Characters that a terminal could act on are escaped: encoding/json
// leaves most of them as they are.
func encodeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	var out strings.Builder
	for _, r := range b.String() {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}
