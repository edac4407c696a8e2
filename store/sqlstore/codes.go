package sqlstore

import (
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/excerpt"
	"github.com/leasehold-dev/leasehold/store"
)

// fault is what an error says about the statement that failed and about its connection.
type fault struct {
	// code is the server's; it is empty if the error is not from the server.
	code string
	// certain: the statement had no effect.
	certain bool
	// again: the statement had no effect, and can have one soon.
	again bool
	// unusable: the connection should not be used again. It is broken, or it leads to
	// a server that can only be read.
	unusable bool
	outcome  store.Outcome
	advice   string // for people; it may be empty
}

// explain returns the error for people.
func (f fault) explain(err error) error {
	text := excerpt.Of(causeOf(err.Error()))
	if f.advice == "" {
		return errors.New(text)
	}
	return fmt.Errorf("%s: %s", f.advice, text)
}

// Advice that dialects have in common.
const (
	adviceMissing      = `the table of locks is missing, or of another version: run "leasehold schema"`
	adviceFull         = "the server's disk is full"
	adviceConflicts    = "conflicts with other transactions, and nothing was done"
	adviceCrowded      = "the server has no free connection"
	adviceReadOnlyRole = "transactions of this role can only read: default_transaction_read_only is on; turn it off for the role that uses locks (ALTER ROLE ... SET default_transaction_read_only = off)"
	adviceReadOnly     = "the server can only be read: it is a standby or a replica, or was made one, or read_only or default_transaction_read_only is on; connect to the primary (for PostgreSQL with target_session_attrs=read-write and all hosts in the URL)"
)
