package sqlstore

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// answer is the answer of the procedures ask and await, and of those for other kinds.
type answer struct {
	verdict   string
	token     fence.Token
	spare     int
	slot      int64
	endsIn    time.Duration
	holder    store.Holder // of the lease or place in the way
	inUse     store.Kind   // of a mismatch
	position  int
	ahead     int64 // the signal to wait for, or that the session took for a grant; 0: none
	waited    bool
	refreshed bool
	at        int64
	session   int64
}

// Verdicts of the procedures.
const (
	granted   = "granted"
	regranted = "again"
	busy      = "busy"
	buried    = "buried"
	gone      = "gone"
	otherKind = "kind"     // ask: the lock is in use as another kind than a mutex
	nowMutex  = "mutex"    // askKind: a mutex was asked for, and the lock is one again
	mismatch  = "mismatch" // the lock is in use as another kind than was asked for
	smaller   = "smaller"  // the owner's lease has less weight than was asked for
)

func (a *answer) scan(r row) error {
	var token, endsIn, ahead, position sql.NullInt64
	var owner sql.NullString
	var meta hexadecimal
	err := r.Scan(&a.verdict, &token, &a.spare, &endsIn, &owner, &meta, &position, &ahead, &a.waited, &a.refreshed, &a.at, &a.session)
	a.token = fence.Token(token.Int64)
	a.endsIn = duration(endsIn.Int64)
	a.position, a.ahead = int(position.Int64), ahead.Int64
	if owner.Valid {
		a.holder = store.DecodeHolder(owner.String, string(meta))
	}
	return err
}

// scanKind scans the answer of a procedure for other kinds than a mutex.
func (a *answer) scanKind(r row) error {
	var token, slot, endsIn, position, limit sql.NullInt64
	var owner sql.NullString
	var shared sql.NullBool
	var meta hexadecimal
	err := r.Scan(&a.verdict, &token, &a.spare, &slot, &endsIn, &owner, &meta, &position, &limit, &shared, &a.refreshed, &a.at)
	a.token, a.slot = fence.Token(token.Int64), slot.Int64
	a.endsIn = duration(endsIn.Int64)
	a.position = int(position.Int64)
	a.inUse = store.Kind{Limit: limit.Int64, Shared: shared.Bool}
	if owner.Valid {
		a.holder = store.DecodeHolder(owner.String, string(meta))
	}
	return err
}

// hexadecimal scans a column of bytes that the query encodes in hexadecimal. Null is
// an empty string.
type hexadecimal string

// Scan implements sql.Scanner.
func (h *hexadecimal) Scan(src any) error {
	var text sql.NullString
	if err := text.Scan(src); err != nil {
		return err
	}
	b, err := hex.DecodeString(text.String)
	*h = hexadecimal(b)
	return err
}

func (a *answer) held() bool { return a.verdict == granted || a.verdict == regranted }

func (a *answer) busyError(name string) *store.BusyError {
	return &store.BusyError{Name: name, Holder: a.holder, ExpiresIn: max(0, a.endsIn), Position: a.position}
}

// refusal returns the error for a verdict that ends an attempt.
func (a *answer) refusal(op string, l store.Lease) error {
	switch a.verdict {
	case busy:
		return a.busyError(l.Name)
	case buried:
		return fmt.Errorf("%s %q: %w: this attempt was given up; a new attempt needs a new owner", op, l.Name, store.ErrNotHeld)
	case mismatch:
		return &store.KindError{Name: l.Name, Asked: l.Kind, InUse: a.inUse, Holder: a.holder}
	case smaller:
		return store.HeavierError(op, l)
	}
	return fmt.Errorf("%s %q: unexpected verdict %q", op, l.Name, a.verdict)
}
