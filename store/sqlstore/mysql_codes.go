package sqlstore

import (
	"errors"
	"regexp"

	"github.com/leasehold-dev/leasehold/store"
)

// serverSays is the beginning of an error of the server, as the driver writes it.
var serverSays = regexp.MustCompile(`^Error (\d+)(?: \(\w{5}\))?: `)

// errorNumber returns the number of a server's error, or an empty string if err is none. This
// package imports no driver, and the error of go-sql-driver/mysql has no method for it.
func errorNumber(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		if says := serverSays.FindStringSubmatch(err.Error()); says != nil {
			return says[1]
		}
	}
	return ""
}

func (mysql) fault(err error) fault { return mysqlFault(errorNumber(err)) }

// mysqlFault says what the number of an error means.
func mysqlFault(c string) fault {
	f := fault{code: c, certain: true, outcome: store.Refused}
	switch c {
	case "", // no error of the server
		"1053", "1080", "1152", "1153", "1158", "1159", "1160", "1161", "1927", "3032", "3169", "4031": // the connection or the server ends
		return fault{code: c, unusable: true, outcome: store.Unreachable}
	case "1213", "1205", "1020", "1062", "3572": // deadlock, lock wait timeout, record changed, duplicate key, no wait
		f.again, f.outcome, f.advice = true, store.Unsettled, adviceConflicts
	case "1317", "1969", "3024": // killed, max_statement_time, max_execution_time
		f.again, f.outcome, f.advice = true, store.Unsettled, "the server ended the statement, and nothing was done"
	case "1290", "1792", "1836": // another connection may reach the new primary
		f.again, f.unusable, f.outcome, f.advice = true, true, store.Unsettled, adviceReadOnly
	case "1047": // Galera
		f.again, f.unusable, f.outcome, f.advice = true, true, store.Unsettled, "this node is not part of its cluster at present"
	case "1040", "1203", "1226":
		f.outcome, f.advice = store.Unsettled, adviceCrowded
	case "1146", "1049", "1054", "1176":
		f.advice = adviceMissing
	case "1044", "1142", "1143":
		f.advice = `the user may not use the table of locks, or there is none: run "leasehold schema --grant USER" as a user that may create it`
	case "1114", "1021":
		f.advice = adviceFull
	case "1665":
		f.advice = "the binary log cannot record this: set binlog_format to ROW or MIXED"
	case "1045", "3159": // also what MariaDB and MySQL say if require_secure_transport is on
		f.advice = "the server does not accept this user with this password, or only with TLS, which tls=false in the URL rules out"
	case "1130":
	default: // it may come after the commit
		f.certain = false
	}
	return f
}
