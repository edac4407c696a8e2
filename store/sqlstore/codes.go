package sqlstore

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/excerpt"
	"github.com/leasehold-dev/leasehold/store"
)

// Codes of errors that the procedures raise.
const (
	codeIsolation = "LH001" // the transaction has another isolation level than READ COMMITTED
	codeOver      = "LH002" // hold: the lease is over
)

// codeCancelled is the code of a statement that was cancelled, such as by
// statement_timeout. Its transaction was not committed: a commit is not cancelled.
const codeCancelled = "57014"

// Codes of errors that concern prepared statements. Nothing was done.
const (
	codePrepared   = "42P05" // another session of the pooler has prepared it
	codeUnprepared = "26000" // this one has not
	codeChanged    = "0A000" // the procedures were replaced meanwhile
)

// code returns the SQLSTATE of a server's error, or an empty string if err is none.
// This package imports no driver, so it looks for the method that pgx and pq have in
// common.
func code(err error) string {
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return e.SQLState()
	}
	return ""
}

func isCode(err error, c string) bool { return err != nil && code(err) == c }

// certain reports whether err says that the call had no effect.
func certain(err error) bool {
	if errors.Is(err, driver.ErrBadConn) {
		return true // the driver has sent nothing
	}
	switch c := code(err); {
	case c == "", strings.HasPrefix(c, "08"), c == "40003":
		return false
	case strings.HasPrefix(c, "57P"):
		return false // the server was told to stop, perhaps while it was committing
	}
	return true
}

// aborted reports whether the server has only ended a call, without an effect, because it
// waited too long or was in the way of others. The session is as it was.
func aborted(err error) bool {
	switch code(err) {
	case "40001", "40P01", "55P03", codeCancelled:
		return true
	}
	return false
}

// again reports whether nothing was done and trying again can help soon.
func again(err error) bool {
	switch code(err) {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, lock_timeout
		return true
	case codePrepared, codeUnprepared, codeChanged:
		return true
	case "25006": // a standby; another connection may reach the new primary
		return true
	}
	return errors.Is(err, driver.ErrBadConn)
}

// unusable reports whether the connection should not be used again: it is broken, or
// it leads to a server that can only be read.
func unusable(err error) bool {
	c := code(err)
	return c == "" || c == "25006" || strings.HasPrefix(c, "08") || strings.HasPrefix(c, "57P")
}

// explain returns the outcome that err stands for, and an error for people.
func explain(err error) (store.Outcome, error) {
	text := excerpt.Of(err.Error())
	switch c := code(err); {
	case c == "", strings.HasPrefix(c, "08"):
		return store.Unreachable, errors.New(text)
	case c == "25006":
		return store.Unsettled, fmt.Errorf("the server can only be read: it is a standby, or was made one, or default_transaction_read_only is on; connect to the primary (with target_session_attrs=read-write and all hosts in the URL, the driver finds it): %s", text)
	case c == "57P03":
		return store.Loading, errors.New(text)
	case strings.HasPrefix(c, "57P"):
		return store.Unreachable, errors.New(text)
	case c == "53300":
		return store.Unsettled, fmt.Errorf("the server has no free connection: %s", text)
	case c == "3F000" || c == "42883" || c == "42P01":
		return store.Refused, fmt.Errorf("the lock tables are missing or too old: run \"leasehold schema\": %s", text)
	case c == "42501":
		return store.Refused, fmt.Errorf("the role may not call the procedures: run \"leasehold schema --grant ROLE\" as the owner of the schema: %s", text)
	case c == "53100":
		return store.Refused, fmt.Errorf("the server's disk is full: %s", text)
	case c == codeCancelled:
		return store.Unsettled, fmt.Errorf("the server ended the call, and nothing was done (a transaction may rely on the lease in the way, for longer than statement_timeout): %s", text)
	case c == "40001" || c == "40P01" || c == "55P03":
		return store.Unsettled, fmt.Errorf("conflicts with other transactions, and nothing was done: %s", text)
	}
	return store.Refused, errors.New(text)
}
