package cli

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"time"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// jsonHelp is the contract about --json of ls and show.
const jsonHelp = `The JSON is a stable interface. A lock is an object with
  name           the lock's name; one that is not UTF-8 also has name_base64
  held           whether it is held; the following fields only if it is
  owner          the owner value of the lease
  host, pid, purpose, since
                 what the holder says about itself, as far as it does; since
                 is when it asked for the lock, RFC 3339, by its own clock
  held_for_ms    milliseconds since the lock was granted, by the store's clock;
                 absent if the store cannot tell
  expires_in_ms  milliseconds until the lease ends unless it is renewed;
                 null if it never ends by itself
  token          the fencing token; absent if the store has none
  queue          with show, if anyone waits: an array of objects with position
                 (1 is next), owner, host, pid, purpose and since (when it began
                 to wait) as above, and expires_in_ms (when its place ends unless
                 it is refreshed); at most 100
  nodes          for stores of several nodes, what each node answers: an array of
                 objects with node, outcome ("taken", "absent", "unreachable",
                 ...), owner and expires_in_ms if taken, and error if any
Fields may be added; none is renamed or removed.`

// stateJSON is a lock, as jsonHelp describes it.
type stateJSON struct {
	Name       string `json:"name"`
	NameBase64 string `json:"name_base64,omitempty"`
	Held       bool   `json:"held"`
	*heldJSON
	Queue []placeJSON `json:"queue,omitempty"`
	Nodes []nodeJSON  `json:"nodes,omitempty"`
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
}

func holderToJSON(h store.Holder) holderJSON {
	j := holderJSON{Owner: h.Owner, Host: h.Host, PID: h.PID, Purpose: h.Purpose}
	if !h.Since.IsZero() {
		since := h.Since.UTC()
		j.Since = &since
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
	j := stateJSON{Name: st.Name, Held: st.Held}
	if !utf8.ValidString(st.Name) {
		j.NameBase64 = base64.StdEncoding.EncodeToString([]byte(st.Name))
	}
	if st.Held {
		j.heldJSON = &heldJSON{holderToJSON(st.Holder), nil, milliseconds(st.ExpiresIn), st.Token}
		if held := milliseconds(st.HeldFor); held > 0 {
			j.HeldFor = &held
		}
	}
	for i, p := range st.Queue {
		j.Queue = append(j.Queue, placeJSON{i + 1, holderToJSON(p.Holder), milliseconds(max(0, p.ExpiresIn))})
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

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
