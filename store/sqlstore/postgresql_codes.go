package sqlstore

import (
	"errors"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// sqlState returns the SQLSTATE of a server's error, or an empty string if err is
// none. This package imports no driver, so it looks for the method that pgx and pq
// have in common.
func sqlState(err error) string {
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return e.SQLState()
	}
	return ""
}

func (postgresql) fault(err error) fault {
	f := sqlFault(sqlState(err))
	if f.code == "" && strings.Contains(err.Error(), "received unexpected message") { // as pgx says
		f.advice = "the server there is not PostgreSQL"
	}
	return f
}

// sqlFault says what an SQLSTATE means.
func sqlFault(c string) fault {
	f := fault{code: c, certain: true, outcome: store.Refused}
	switch {
	case c == "", strings.HasPrefix(c, "08"):
		return fault{code: c, unusable: true, outcome: store.Unreachable}
	case c == "57P03":
		return fault{code: c, unusable: true, outcome: store.Loading}
	case strings.HasPrefix(c, "57P"): // the server was told to stop, perhaps while it was committing
		return fault{code: c, unusable: true, outcome: store.Unreachable}
	case c == "40003":
		f.certain = false
	case c == "57014":
		// A statement was cancelled, such as by statement_timeout. Its transaction was not
		// committed: a commit is not cancelled.
		f.again, f.outcome, f.advice = true, store.Unsettled, "the server ended the statement, and nothing was done (a transaction may rely on the lease in the way, for longer than statement_timeout)"
	case c == "40001", c == "40P01", c == "55P03", c == "23505": // serialization failure, deadlock, lock_timeout, duplicate key
		f.again, f.outcome, f.advice = true, store.Unsettled, adviceConflicts
	case c == "42P05", c == "26000": // another session of the pooler has prepared it; this one has not
		f.again, f.unusable = true, true
		f.advice = "prepared statements do not stay with a connection, as behind some poolers: set default_query_exec_mode=exec"
	case c == "0A000": // the table was replaced after the connection prepared its statements
		f.again, f.unusable = true, true
	case c == "25006": // a standby; another connection may reach the new primary
		f.again, f.unusable, f.outcome, f.advice = true, true, store.Unsettled, adviceReadOnly
	case c == "53300":
		f.outcome, f.advice = store.Unsettled, adviceCrowded
	case c == "3F000", c == "42P01", c == "42703":
		f.advice = adviceMissing
	case c == "42501":
		f.advice = `the role may not use the table of locks: run "leasehold schema --grant ROLE" as its owner`
	case c == "53100":
		f.advice = adviceFull
	}
	return f
}
