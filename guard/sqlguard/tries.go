package sqlguard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

// patience bounds how long conflicts are retried if the context does not end
// first.
const patience = 10 * time.Second

// tries counts the attempts at one operation.
type tries struct {
	end time.Time
	n   int
}

func newTries() *tries { return &tries{end: time.Now().Add(patience)} }

// after waits a little and returns nil if err is a conflict that may be gone by
// then. Otherwise it returns the error to give up with.
func (t *tries) after(ctx context.Context, err error) error {
	if err == nil || !conflict(err) {
		return err
	}
	if time.Now().After(t.end) {
		return fmt.Errorf("conflicts with other transactions for %v, and nothing was done: %w", patience, err)
	}
	// Random, so that transactions that met once do not meet again.
	const least, most = time.Millisecond, 50 * time.Millisecond
	d := min(least<<min(t.n, 10), most)
	t.n++
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w, after conflicts with other transactions: %w", context.Cause(ctx), err)
	}
}

// conflict reports whether err says that a concurrent transaction was in the way
// and that nothing was done. This package imports no driver, so it looks for
// methods that drivers have in common, and at the text of errors that have none.
// An error that it does not recognise is not retried.
func conflict(err error) bool {
	if errors.Is(err, fence.ErrStale) {
		return false
	}
	// PostgreSQL: pgx and pq both have SQLState.
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		switch e.SQLState() {
		case "40001", "40P01": // serialization failure, deadlock
			return true
		}
		return false
	}
	// SQLite: modernc.org/sqlite has Code, the extended result code.
	if e, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		switch e.Code() & 0xff {
		case 5, 6: // SQLITE_BUSY, SQLITE_LOCKED
			return true
		}
		return false
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner // without the names that we put around it
	}
	text := err.Error()
	for _, known := range []string{
		"Error 1213", // MySQL: deadlock
		"Error 1205", // MySQL: lock wait timeout
		"Error 1020", // MariaDB: record has changed since last read, its snapshot isolation
		"database is locked",
		"database table is locked",
	} {
		if strings.Contains(text, known) {
			return true
		}
	}
	return false
}

// refused reports whether a failed commit certainly had no effect.
func refused(err error) bool {
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		// Transaction rollback, and constraints that are checked at the end.
		return strings.HasPrefix(e.SQLState(), "40") && e.SQLState() != "40003" || strings.HasPrefix(e.SQLState(), "23")
	}
	return conflict(err)
}
