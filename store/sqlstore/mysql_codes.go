package sqlstore

import (
	"database/sql/driver"
	"errors"
	"regexp"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// serverSays is the beginning of an error of the server, as the driver writes it.
var serverSays = regexp.MustCompile(`^Error (\d+)(?: \((\w{5})\))?: `)

// errorNumber returns the number of a server's error, or the SQLSTATE of one that our
// procedures raise. It returns an empty string if err is none. This package imports no
// driver, and the error of go-sql-driver/mysql has no method for it.
func errorNumber(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		if says := serverSays.FindStringSubmatch(err.Error()); says != nil {
			if strings.HasPrefix(says[2], "LH") {
				return says[2]
			}
			return says[1]
		}
	}
	return ""
}

func (mysql) fault(err error) fault {
	f := mysqlFault(errorNumber(err))
	if errors.Is(err, driver.ErrBadConn) { // lib/pq says so even if it has sent the call
		f.again = true
	}
	return f
}

// mysqlFault says what the number of an error means.
func mysqlFault(c string) fault {
	f := fault{code: c, certain: true, outcome: store.Refused}
	switch c {
	case "", // no error of the server
		"1053", "1080", "1152", "1153", "1158", "1159", "1160", "1161", "1927", "3032", "3169", "4031": // the connection or the server ends
		return fault{code: c, unusable: true, outcome: store.Unreachable}
	case "1213", "1205", "1020", "3058", "3572": // deadlock, lock wait timeout, record changed, deadlock of signals, no wait
		f.again, f.aborted, f.outcome, f.advice = true, true, store.Unsettled, adviceConflicts
	case "1290", "1792", "1836": // another connection may reach the new primary
		f.again, f.unusable, f.outcome, f.advice = true, true, store.Unsettled, adviceReplica
	case "1047": // Galera
		f.again, f.unusable, f.outcome, f.advice = true, true, store.Unsettled, "this node is not part of its cluster at present"
	case "1040", "1203", "1226":
		f.outcome, f.advice = store.Unsettled, adviceCrowded
	case "1305", "1146", "1049", "1318":
		f.advice = adviceMissing
	case "1370", "1044", "1142":
		f.advice = `the user may not call the procedures, or there are none: run "leasehold schema --grant USER" as a user that may create them`
	case "1114", "1021":
		f.advice = adviceFull
	case "1665":
		f.advice = "the binary log cannot record this: set binlog_format to ROW or MIXED"
	case "1045", "3159": // also what MariaDB and MySQL say if require_secure_transport is on
		f.advice = "the server does not accept this user with this password, or only with TLS, which tls=false in the URL rules out"
	case "1130", codeOver, codeKind:
	default: // it may come after the commit
		f.certain = false
	}
	return f
}

// adviceReplica is about a server that can only be read.
const adviceReplica = "the server can only be read: it is a replica, or was made one, or read_only is on; connect to the primary"
