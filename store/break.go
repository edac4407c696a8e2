package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/excerpt"
)

// Breaker is a Store in which an operator can end the lease of a holder that does not
// end it itself.
type Breaker interface {
	Store

	// BreakLease takes the lease that r.Owner holds with r.Token. From then on the
	// lease cannot be renewed or healed, and no request of the owner that is still in
	// flight can bring it back. The lock stays taken until the owner releases the
	// lease, or its validity ends. BreakLease returns how long that can take at most, and
	// zero if the lease is over; the caller repeats the call to learn when it is. With
	// r.Now the lock is freed at once: the owner may then still work, and only fencing
	// tokens protect.
	//
	// A repeated call changes nothing, and keeps the first note. It also succeeds when
	// the lease is over. It blocks for the answer of the store only.
	//
	// The error matches ErrNotHeld if r.Owner has no lease with that token, and never
	// had one that was broken lately; ErrUnsupported if this lock's lease cannot be
	// broken, such as that of another kind of client; or it is as that of Release.
	// After any error but these the lease may or may not be broken, and calling again
	// is safe.
	BreakLease(ctx context.Context, r BreakRequest) (left time.Duration, err error)
}

// BreakNotifier is a Breaker that tells its clients at once that a lease was broken. The
// others leave that to the next renewal, which is refused.
type BreakNotifier interface {
	Breaker

	// NotifyBroken calls f with the owner of each lease that is broken from now on, by
	// whatever handle or process, until stop is called or the store is closed. It
	// follows BreakLease, so a renewal that is sent then is refused. It is only a hint:
	// a call can be missed or repeated, and can be about a lease that nobody broke.
	//
	// f may be called by several goroutines at once, also before NotifyBroken and after
	// stop return. It must not block or call the store. A second call of stop does
	// nothing.
	NotifyBroken(f func(owner string)) (stop func())
}

// BreakRequest is the request of Breaker.BreakLease.
type BreakRequest struct {
	// Name is the name of the lock.
	Name string
	// Owner and Token are those of the lease, as State has them.
	Owner string
	Token fence.Token
	// Now frees the lock at once; see Breaker.
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

// UnbreakableError returns the error of Breaker.BreakLease for the lease of another kind of
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
