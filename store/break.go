package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/excerpt"
)

// BreakRequest is the request of Store.BreakLease.
type BreakRequest struct {
	// Name is the name of the lock.
	Name string
	// Owner and Token are those of the lease, as State has them.
	Owner string
	Token fence.Token
	// Now frees the lock at once; see Store.BreakLease.
	Now bool
	// By says who breaks the lease, and Reason why, for people to read: at most
	// MaxNote bytes each. Stores keep them for KeepBroken.
	By, Reason string
	// At is when the caller broke the lease, by its wall clock. It is only shown.
	At time.Time
}

// Limits of a BreakRequest, and how long State.Broken lasts after the lease.
const (
	MaxNote    = 1024
	KeepBroken = 24 * time.Hour
)

// Check returns nil if r is valid, and otherwise an error that matches ErrInvalid.
func (r BreakRequest) Check() error {
	if err := cmp.Or(CheckName(r.Name), CheckOwner(r.Owner)); err != nil {
		return err
	}
	if r.Token == 0 {
		return fmt.Errorf("%w: the token of the lease to break is missing", ErrInvalid)
	}
	if len(r.By) > MaxNote || len(r.Reason) > MaxNote {
		return fmt.Errorf("%w: by whom and why a lease is broken can have %d bytes each", ErrInvalid, MaxNote)
	}
	return nil
}

// Broken says who broke a lease, and why.
type Broken struct {
	// Owner and Token are those of the lease.
	Owner string
	Token fence.Token
	// By, Reason, At and Now are as in BreakRequest.
	By, Reason string
	At         time.Time
	Now        bool
}

// String says by whom and why the lease was broken, in one short line that is safe on a
// terminal.
func (b *Broken) String() string {
	s := "broken by " + cmp.Or(excerpt.Of(b.By), "somebody")
	if b.Reason != "" {
		s += ": " + excerpt.Of(b.Reason)
	}
	return s
}

// brokenJSON is the note as stores keep it, beside Owner and Token.
type brokenJSON struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	At     int64  `json:"at,omitempty"` // Unix seconds
	Now    bool   `json:"now,omitempty"`
}

// BrokenError returns the error with which a store refuses a request, such as "acquire", of an
// owner whose lease was broken. It matches ErrNotHeld.
func BrokenError(request, name string) error {
	return fmt.Errorf("%s %q: %w: the lease of this owner was broken; a new attempt needs a new owner", request, name, ErrNotHeld)
}

// UnbreakableError returns the error of Store.BreakLease for the lease of another kind of
// client. It matches ErrUnsupported.
func UnbreakableError(name string) error {
	return fmt.Errorf("%w: another kind of client made lock %q, and only that can end it", ErrUnsupported, name)
}

// Note encodes by whom, why, when and how r breaks the lease, as compact JSON.
func (r BreakRequest) Note() string {
	j := brokenJSON{By: strings.ToValidUTF8(r.By, "?"), Reason: strings.ToValidUTF8(r.Reason, "?"), Now: r.Now}
	if !r.At.IsZero() {
		j.At = r.At.Unix()
	}
	b, err := json.Marshal(j)
	if err != nil {
		panic("leasehold: encoding strings and numbers failed: " + err.Error())
	}
	return string(b)
}

// DecodeBroken returns what BreakRequest.Note encoded as note. It accepts any bytes:
// if they are no note, only Owner and Token are set.
func DecodeBroken(owner string, token fence.Token, note string) *Broken {
	b := &Broken{Owner: owner, Token: token}
	var j brokenJSON
	if json.Unmarshal([]byte(note), &j) != nil {
		return b
	}
	b.By, b.Reason, b.Now = j.By, j.Reason, j.Now
	if 0 < j.At && j.At < lastSince {
		b.At = time.Unix(j.At, 0)
	}
	return b
}
