// Package statejson is the state of a lock in JSON, as "leasehold show --json" prints it and
// the server answers it: one encoder, and the decoder for programs that ask a server. The
// help of that command describes the fields.
package statejson

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// State is a lock.
type State struct {
	LockName
	Held bool `json:"held"`
	*Lease
	InUse
	Undecided []Undecided `json:"undecided,omitempty"`
	Broken    *Broken     `json:"broken,omitempty"`
	Queue     []Place     `json:"queue,omitempty"`
	Nodes     []Node      `json:"nodes,omitempty"`
}

// InUse says what kind of lock is held.
type InUse struct {
	Kind    string    `json:"kind,omitempty"`
	Permits int64     `json:"permits,omitempty"`
	Holders []Holding `json:"holders,omitempty"`
}

// Holding is one of several holders.
type Holding struct {
	Lease
	Slot   int64  `json:"slot"`
	Weight int64  `json:"weight,omitempty"`
	Mode   string `json:"mode,omitempty"`
}

// Undecided is a lease that may be held.
type Undecided struct {
	Lease
	Kind    string `json:"kind"`
	Permits int64  `json:"permits,omitempty"`
	Slot    *int64 `json:"slot,omitempty"`
	Weight  int64  `json:"weight,omitempty"`
	Mode    string `json:"mode,omitempty"`
}

// Broken is the lease that was broken last.
type Broken struct {
	Owner  string      `json:"owner"`
	Token  fence.Token `json:"token"`
	By     string      `json:"by,omitempty"`
	Reason string      `json:"reason,omitempty"`
	At     *time.Time  `json:"at,omitempty"`
	Now    bool        `json:"now"`
}

// LockName is the name of a lock. JSON cannot hold one that is not UTF-8.
type LockName struct {
	Name   string `json:"name"`
	Base64 string `json:"name_base64,omitempty"`
}

// NameOf returns name for JSON.
func NameOf(name string) LockName {
	n := LockName{Name: name}
	if !utf8.ValidString(name) {
		n.Base64 = base64.StdEncoding.EncodeToString([]byte(name))
	}
	return n
}

// Text returns the name that NameOf was given.
func (n LockName) Text() (string, error) {
	if n.Base64 == "" {
		return n.Name, nil
	}
	b, err := base64.StdEncoding.DecodeString(n.Base64)
	return string(b), err
}

// Lease is one lease of a lock.
type Lease struct {
	Holder
	HeldFor     *Milliseconds `json:"held_for_ms,omitempty"`
	Expires     Milliseconds  `json:"expires_in_ms"`
	Token       fence.Token   `json:"token,omitempty"`
	OtherTokens []fence.Token `json:"other_tokens,omitempty"`
}

// Place is the place of a waiter.
type Place struct {
	Position int `json:"position"`
	Holder
	Expires Milliseconds `json:"expires_in_ms"`
}

// Holder is a holder or a waiter.
type Holder struct {
	Owner       string     `json:"owner"`
	Foreign     bool       `json:"foreign,omitempty"`
	Host        string     `json:"host,omitempty"`
	PID         int        `json:"pid,omitempty"`
	Purpose     string     `json:"purpose,omitempty"`
	Unrenewed   bool       `json:"unrenewed,omitempty"`
	LeaseBroken bool       `json:"lease_broken,omitempty"`
	Waiting     bool       `json:"waiting,omitempty"`
	Since       *time.Time `json:"since,omitempty"`
	Trace       string     `json:"trace,omitempty"`
}

// HolderOf returns h for JSON.
func HolderOf(h store.Holder) Holder {
	return Holder{Owner: h.Owner, Foreign: h.Foreign, Host: h.Host, PID: h.PID, Purpose: h.Purpose, Unrenewed: h.Unrenewed, LeaseBroken: h.Broken, Waiting: h.Waiting, Since: utc(h.Since), Trace: h.Trace}
}

// Store returns what HolderOf was given.
func (h Holder) Store() store.Holder {
	return store.Holder{Owner: h.Owner, Foreign: h.Foreign, Host: h.Host, PID: h.PID, Purpose: h.Purpose, Unrenewed: h.Unrenewed, Broken: h.LeaseBroken, Waiting: h.Waiting, Since: local(h.Since), Trace: h.Trace}
}

// utc returns nil for the zero time.
func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func local(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Local()
}

func leaseOf(h store.Holding) Lease {
	j := Lease{Holder: HolderOf(h.Holder), Expires: Milliseconds(h.ExpiresIn), Token: h.Token, OtherTokens: h.OtherTokens}
	if held := Milliseconds(h.HeldFor); held > 0 {
		j.HeldFor = &held
	}
	return j
}

func (l Lease) store() store.Holding {
	h := store.Holding{Holder: l.Holder.Store(), Token: l.Token, OtherTokens: l.OtherTokens, ExpiresIn: time.Duration(l.Expires), Weight: 1}
	if l.HeldFor != nil {
		h.HeldFor = time.Duration(*l.HeldFor)
	}
	return h
}

// IsOne reports whether a lock of kind k has the one holder of a mutex. A semaphore that
// was resized to one permit is a mutex, and can have more.
func IsOne(k store.Kind, held []store.Holding) bool { return k.IsMutex() && len(held) == 1 }

// ModeOf reports whether a holder of a read-write lock reads or writes.
func ModeOf(k store.Kind, h store.Holding) string {
	if h.Weight < k.Limit {
		return "reader"
	}
	return "writer"
}

func kindOf(k store.Kind, held []store.Holding) InUse {
	j := InUse{Kind: "mutex"}
	switch {
	case IsOne(k, held):
		return j
	case k.IsMutex(): // the holders say the rest
	case k.Shared:
		j.Kind = "read-write"
		if k != store.ReadWrite {
			j.Permits = k.Limit
		}
	default:
		j.Kind, j.Permits = "semaphore", k.Limit
	}
	for _, h := range held {
		one := Holding{Lease: leaseOf(h), Slot: h.Slot}
		if k.Shared {
			one.Mode = ModeOf(k, h)
			if h.Weight != 1 && h.Weight != k.Limit {
				one.Weight = h.Weight
			}
		} else {
			one.Weight = h.Weight
		}
		j.Holders = append(j.Holders, one)
	}
	return j
}

func (j InUse) store() store.Kind {
	switch j.Kind {
	case "read-write":
		if j.Permits == 0 {
			return store.ReadWrite
		}
		return store.Kind{Limit: j.Permits, Shared: true}
	case "semaphore":
		return store.Semaphore(j.Permits)
	}
	return store.Kind{}
}

// weightOf is the weight that a holder with a mode has, unless it is given.
func weightOf(k store.Kind, mode string, weight int64) int64 {
	switch {
	case weight != 0:
		return weight
	case mode == "writer":
		return k.Limit
	}
	return 1
}

// Node is what a node answers.
type Node struct {
	Node    string        `json:"node"`
	Outcome string        `json:"outcome"`
	Owner   string        `json:"owner,omitempty"`
	Expires *Milliseconds `json:"expires_in_ms,omitempty"`
	Error   string        `json:"error,omitempty"`
}

// NodesOf returns nodes for JSON.
func NodesOf(nodes []store.NodeOutcome) (list []Node) {
	for _, n := range nodes {
		node := Node{Node: n.Node, Outcome: n.Outcome.String()}
		switch n.Outcome {
		case store.Taken:
			node.Owner = n.Holder.Owner
			fallthrough
		case store.Quarantined:
			expires := Milliseconds(n.ExpiresIn)
			node.Expires = &expires
		}
		if n.Err != nil {
			node.Error = n.Err.Error()
		}
		list = append(list, node)
	}
	return list
}

// Nodes returns what NodesOf was given, with the text of errors only.
func Nodes(list []Node) (nodes []store.NodeOutcome) {
	for _, j := range list {
		n := store.NodeOutcome{Node: j.Node, Outcome: outcomeOf(j.Outcome), Holder: store.Holder{Owner: j.Owner}}
		if j.Expires != nil {
			n.ExpiresIn = time.Duration(*j.Expires)
		}
		if j.Error != "" {
			n.Err = errors.New(j.Error)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// outcomeOf is the inverse of store.Outcome.String. A server may be newer than its client.
func outcomeOf(name string) store.Outcome {
	for o := store.Pending; o <= store.Unsettled; o++ {
		if o.String() == name {
			return o
		}
	}
	return store.Pending
}

// Milliseconds is the time until something expires, at most, or for how long it has lasted.
// A negative value means never.
type Milliseconds time.Duration

// MarshalJSON writes whole milliseconds, rounded up, or null.
func (m Milliseconds) MarshalJSON() ([]byte, error) {
	if m < 0 {
		return []byte("null"), nil
	}
	return json.Marshal((time.Duration(m) + time.Millisecond - 1).Milliseconds())
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *Milliseconds) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*m = -1
		return nil
	}
	var n int64
	err := json.Unmarshal(b, &n)
	*m = Milliseconds(time.Duration(min(max(n, 0), 1<<43)) * time.Millisecond)
	return err
}

// Of returns st for JSON.
func Of(st store.State) State {
	j := State{LockName: NameOf(st.Name), Held: st.Held}
	if st.Held {
		held := st.Holdings()
		first := leaseOf(held[0])
		j.Lease, j.InUse = &first, kindOf(st.Kind, held)
	}
	for _, h := range st.Undecided {
		of := kindOf(h.Kind, []store.Holding{h})
		u := Undecided{Lease: leaseOf(h), Kind: of.Kind, Permits: of.Permits}
		for _, one := range of.Holders {
			u.Slot, u.Weight, u.Mode = &one.Slot, one.Weight, one.Mode
		}
		j.Undecided = append(j.Undecided, u)
	}
	if b := st.Broken; b != nil {
		j.Broken = &Broken{Owner: b.Owner, Token: b.Token, By: b.By, Reason: b.Reason, At: utc(b.At), Now: b.Now}
	}
	for i, p := range st.Queue {
		j.Queue = append(j.Queue, Place{i + 1, HolderOf(p.Holder), Milliseconds(p.ExpiresIn)})
	}
	j.Nodes = NodesOf(st.Nodes)
	return j
}

// Store returns the state that Of was given, rounded to milliseconds.
func (j State) Store() (store.State, error) {
	name, err := j.LockName.Text()
	st := store.State{Name: name, Held: j.Held, Nodes: Nodes(j.Nodes)}
	if j.Held && j.Lease != nil {
		st.Kind = j.InUse.store()
		for _, one := range j.Holders {
			h := one.Lease.store()
			h.Slot, h.Weight = one.Slot, weightOf(st.Kind, one.Mode, one.Weight)
			st.Holders = append(st.Holders, h)
		}
		first := j.Lease.store()
		st.Holder, st.Token, st.OtherTokens, st.ExpiresIn, st.HeldFor = first.Holder, first.Token, first.OtherTokens, first.ExpiresIn, first.HeldFor
	}
	for _, u := range j.Undecided {
		h := u.Lease.store()
		h.Kind = InUse{Kind: u.Kind, Permits: u.Permits}.store()
		h.Weight = weightOf(h.Kind, u.Mode, u.Weight)
		if u.Slot != nil {
			h.Slot = *u.Slot
		}
		st.Undecided = append(st.Undecided, h)
	}
	if b := j.Broken; b != nil {
		st.Broken = &store.Broken{Owner: b.Owner, Token: b.Token, By: b.By, Reason: b.Reason, At: local(b.At), Now: b.Now}
	}
	for _, p := range j.Queue {
		st.Queue = append(st.Queue, store.Place{Holder: p.Holder.Store(), ExpiresIn: time.Duration(p.Expires)})
	}
	st.Nodes = slices.Clip(st.Nodes)
	return st, err
}
