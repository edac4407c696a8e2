package sqlstore

import (
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/excerpt"
	"github.com/leasehold-dev/leasehold/store"
)

// Codes of errors that the procedures raise.
const (
	codeIsolation = "LH001" // the transaction has another isolation level than READ COMMITTED
	codeOver      = "LH002" // hold: the lease is over
	codeKind      = "LH005" // hold: the lock is in use as another kind than a mutex
)

// fault is what an error says about the call that failed and about its connection.
type fault struct {
	// code is the server's; it is empty if the error is not from the server.
	code string
	// certain: the call had no effect.
	certain bool
	// again: nothing was done and trying again can help soon.
	again bool
	// aborted: the server has only ended the call, without an effect, because it waited
	// too long or was in the way of others. The session is as it was.
	aborted bool
	// unprepared: prepared statements do not stay with a connection. Nothing was done.
	unprepared bool
	// unusable: the connection should not be used again. It is broken, or it leads to
	// a server that can only be read.
	unusable bool
	outcome  store.Outcome
	advice   string // for people; it may be empty
}

// explain returns the error for people.
func (f fault) explain(err error) error {
	text := excerpt.Of(err.Error())
	if f.advice == "" {
		return errors.New(text)
	}
	return fmt.Errorf("%s: %s", f.advice, text)
}

// Advice that dialects have in common.
const (
	adviceMissing   = `the lock tables are missing or too old: run "leasehold schema"`
	adviceFull      = "the server's disk is full"
	adviceConflicts = "conflicts with other transactions, and nothing was done"
	adviceCrowded   = "the server has no free connection"
)
