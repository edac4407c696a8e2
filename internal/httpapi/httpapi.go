// Package httpapi is what "leasehold serve" and its clients write to each other: requests,
// grants, lines of a stream, and problems. The state of a lock is in package statejson. The
// paths, and what each call means, are in docs/serve.md and in the server's openapi.json.
package httpapi

import (
	"encoding/base64"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

// Milliseconds is a time, with decimals if it has to be. Below a month it loses nothing.
type Milliseconds float64

// In returns d in milliseconds.
func In(d time.Duration) Milliseconds { return Milliseconds(d) / Milliseconds(time.Millisecond) }

// Duration returns the time to the nearest nanosecond, or the longest there is.
func (m Milliseconds) Duration() time.Duration {
	d := math.Round(float64(m) * float64(time.Millisecond))
	switch {
	case d >= math.MaxInt64:
		return math.MaxInt64
	case d <= math.MinInt64:
		return math.MinInt64
	}
	return time.Duration(d)
}

// Request is the body of the calls about one lock. Each reads what it needs.
type Request struct {
	// Owner names the lease; see store.Lease.
	Owner string `json:"owner,omitempty"`
	// TTL and Wait are times. No Wait means the default of the call; a negative one has no
	// bound.
	TTL  *Milliseconds `json:"ttl_ms,omitempty"`
	Wait *Milliseconds `json:"wait_ms,omitempty"`
	// Kind is mutex (the default), semaphore, read or write.
	Kind    string `json:"kind,omitempty"`
	Permits int64  `json:"permits,omitempty"`
	Weight  int64  `json:"weight,omitempty"`
	// Purpose, Host, PID and Trace describe the holder.
	Purpose string `json:"purpose,omitempty"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Trace   string `json:"trace,omitempty"`
	// Require is the least class of guarantee.
	Require string `json:"require,omitempty"`
	// Slots are those of the grant.
	Slots string `json:"slots,omitempty"`
	// Keep has the lease outlive the connection of a hold.
	Keep bool `json:"keep,omitempty"`

	// The rest is for stores over HTTP; see store.Lease, store.WaitRequest and
	// store.ReleaseRequest. Meta takes the place of what describes the holder.
	Attempt    string  `json:"attempt,omitempty"`
	Meta       *string `json:"meta,omitempty"`
	MetaBase64 string  `json:"meta_base64,omitempty"`
	Renewed    bool    `json:"renewed,omitempty"`
	Undo       bool    `json:"undo,omitempty"`
	// Call numbers the tries of one call: a server that has seen a later try refuses an
	// earlier one, which was stuck on its way. Again is how often it was tried before.
	Call  string `json:"call,omitempty"`
	Again int    `json:"again,omitempty"`
	// Refuse has a server refuse all tries of Call, and do nothing else. It is for release.
	Refuse bool `json:"refuse,omitempty"`
}

// RequestOf returns the request about l.
func RequestOf(l store.Lease) Request {
	ttl, meta := In(l.TTL), l.Meta
	r := Request{Owner: l.Owner, TTL: &ttl, Attempt: l.Attempt, Weight: l.Weight, Slots: string(rule.SlotsOf(l.Slots...)), Meta: &meta}
	r.Kind, r.Permits = kindName(l.Kind)
	if l.Require != store.Efficiency {
		r.Require = l.Require.String()
	}
	if !utf8.ValidString(l.Meta) {
		r.Meta, r.MetaBase64 = nil, base64.StdEncoding.EncodeToString([]byte(l.Meta))
	}
	return r
}

func kindName(k store.Kind) (kind string, permits int64) {
	switch {
	case k.IsMutex():
		return "", 0
	case k == store.ReadWrite:
		return "read-write", 0
	case k.Shared:
		return "read-write", k.Limit
	}
	return "semaphore", k.Limit
}

// Claim returns the kind and the weight that r names.
func (r Request) Claim() (store.Kind, int64, error) {
	fits := true
	k, weight := store.Kind{}, r.Weight
	switch r.Kind {
	case "", "mutex":
		fits = r.Permits == 0
	case "semaphore":
		if k = store.Semaphore(r.Permits); r.Permits == 0 {
			k.Limit = -1
		}
	case "read":
		k, fits = store.ReadWrite, r.Permits == 0 && r.Weight == 0
		weight = 1
	case "write":
		k, fits = store.ReadWrite, r.Permits == 0 && r.Weight == 0
		weight = store.ReadWriteLimit
	case "read-write":
		if k = store.ReadWrite; r.Permits != 0 {
			k.Limit = r.Permits
		}
	default:
		return k, 0, fmt.Errorf("%w: kind %q: choose one of mutex, semaphore, read, write", store.ErrInvalid, r.Kind)
	}
	if !fits {
		return k, 0, fmt.Errorf("%w: a lock of kind %q has no permits or weight: those are for a semaphore", store.ErrInvalid, r.Kind)
	}
	return k, weight, nil
}

// Lease returns the lease of the lock called name that r is about. A missing TTL is ttl.
func (r Request) Lease(name string, ttl time.Duration) (store.Lease, error) {
	kind, weight, err := r.Claim()
	if err != nil {
		return store.Lease{}, err
	}
	l := store.Lease{Name: name, Owner: r.Owner, Attempt: r.Attempt, Kind: kind, Weight: weight, TTL: ttl}
	l.Slots, _ = rule.Slots(r.Slots).Numbers() // a store that needs them refuses others
	if r.TTL != nil {
		if l.TTL = r.TTL.Duration(); *r.TTL > 1e13 {
			return l, fmt.Errorf("%w: ttl_ms %v is too long", store.ErrInvalid, *r.TTL)
		}
	}
	if r.Require != "" {
		if l.Require, err = store.ParseClass(r.Require); err != nil {
			return l, err
		}
	}
	switch {
	case r.Meta != nil:
		l.Meta = *r.Meta
	case r.MetaBase64 != "":
		b, err := base64.StdEncoding.DecodeString(r.MetaBase64)
		if err != nil {
			return l, fmt.Errorf("%w: meta_base64: %w", store.ErrInvalid, err)
		}
		l.Meta = string(b)
	}
	return l, nil
}

// Grant is the answer to acquire and downgrade.
type Grant struct {
	statejson.LockName
	Owner string      `json:"owner"`
	Token fence.Token `json:"token"`
	Slot  int64       `json:"slot"`
	Slots string      `json:"slots,omitempty"`
	// The lease is valid until At and Valid after the client sent the request.
	At    Span `json:"at_ms"`
	Valid Span `json:"valid_ms"`
	// Repeated is store.Lease's.
	Repeated bool `json:"repeated,omitempty"`
}

// GrantOf returns the answer about g, without its times.
func GrantOf(g store.Grant) Grant {
	l := g.Lease
	return Grant{LockName: statejson.NameOf(l.Name), Owner: l.Owner, Token: g.Token, Slot: g.Slot, Slots: string(rule.SlotsOf(l.Slots...)), Repeated: l.Repeated}
}

// Store returns the grant of l that g is about.
func (g Grant) Store(l store.Lease) store.Grant {
	l.Owner, l.Repeated = g.Owner, g.Repeated
	l.Slots, _ = rule.Slots(g.Slots).Numbers()
	return store.Grant{Lease: l, Token: g.Token, Slot: g.Slot}
}

// Span is a time that may be trusted: whole milliseconds, rounded down.
type Span int64

// SpanOf returns d, or zero if it is negative.
func SpanOf(d time.Duration) Span { return Span(max(d, 0).Milliseconds()) }

// Duration returns the time.
func (s Span) Duration() time.Duration {
	return time.Duration(min(s, math.MaxInt64/Span(time.Millisecond))) * time.Millisecond
}

// Renewal is the answer to renew.
type Renewal struct {
	Valid Span `json:"valid_ms"`
}

// Renewals is the body of the call that renews several leases.
type Renewals struct {
	Leases []NamedRequest `json:"leases"`
}

// NamedRequest is a Request about a lock that the body names.
type NamedRequest struct {
	statejson.LockName
	Request
}

// Renewed is the answer to Renewals: nil for a lease that was renewed.
type Renewed struct {
	Results []*Problem `json:"results"`
}

// Ask is a line of the body of POST /v1/batch: a call that does not wait.
type Ask struct {
	Do string `json:"do"` // acquire or release
	NamedRequest
}

// Reply is a line of the answer: what the call in that line of the body, from 0, is answered. It
// has a grant, a problem, or neither after a release.
type Reply struct {
	Line int `json:"line"`
	*Grant
	Problem *Problem `json:"problem,omitempty"`
}

// Event is a line of a stream.
type Event struct {
	// Event is waiting, held, alive, lost, leaving or failed.
	Event    string `json:"event"`
	*Grant          // of held and leaving, and of alive once the lock is held
	*Problem        // of waiting and failed
	Cause    string `json:"cause,omitempty"` // of lost
	Reason   string `json:"reason,omitempty"`
}

// Break is the body of break.
type Break struct {
	Token  fence.Token `json:"token"`
	Owner  string      `json:"owner,omitempty"`
	Reason string      `json:"reason,omitempty"`
	Now    bool        `json:"now,omitempty"`
	By     string      `json:"by,omitempty"`
	At     *time.Time  `json:"at,omitempty"`
}

// BreakAnswer says how long the broken lease can last. Zero: it is over.
type BreakAnswer struct {
	Left Milliseconds `json:"left_ms"`
}

// Resize is the body of resize.
type Resize struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Locks is the answer to a list.
type Locks struct {
	Locks      []statejson.State `json:"locks"`
	Incomplete string            `json:"incomplete,omitempty"`
}

// Caps is the answer to GET /v1/store; see store.Caps.
type Caps struct {
	Engine     string       `json:"engine"`
	Nodes      int          `json:"nodes"`
	Quorum     int          `json:"quorum"`
	MinTTL     Milliseconds `json:"min_ttl_ms"`
	MaxTTL     Milliseconds `json:"max_ttl_ms"`
	Resolution Milliseconds `json:"resolution_ms"`
	Kinds      bool         `json:"kinds"`
	MaxPermits int64        `json:"max_permits"`
	Breaks     bool         `json:"breaks"`
	Waits      bool         `json:"waits"`
	Changes    bool         `json:"changes"`
	Reach      string       `json:"reach"`
	Clock      string       `json:"clock"`
	Class      string       `json:"class"`
}

// CapsOf returns what s can do.
func CapsOf(s *store.Store) Caps {
	c := s.Caps()
	return Caps{c.Engine, c.Nodes, c.Quorum, In(c.MinTTL), In(c.MaxTTL), In(c.Resolution), !c.MutexesOnly, c.MaxPermits, !c.NoBreaks, !c.NoQueue, !c.MutexesOnly, c.Reach, c.Clock, c.Class.String()}
}

// Store returns the capabilities that c names. A class that is not known is the weakest.
func (c Caps) Store() store.Caps {
	class, _ := store.ParseClass(c.Class)
	return store.Caps{Engine: c.Engine, Nodes: c.Nodes, Quorum: c.Quorum, MinTTL: c.MinTTL.Duration(), MaxTTL: c.MaxTTL.Duration(), Resolution: c.Resolution.Duration(), MutexesOnly: !c.Kinds, MaxPermits: c.MaxPermits, NoBreaks: !c.Breaks, NoQueue: !c.Waits, Reach: c.Reach, Clock: c.Clock, Class: class}
}

// ClassHeader has the class of the store in each answer, since it may change.
const ClassHeader = "Leasehold-Class"
