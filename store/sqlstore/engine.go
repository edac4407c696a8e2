package sqlstore

import (
	"database/sql"
	"net/url"
)

// engine is all that differs between the dialects. The procedures of all of them have
// the same names, arguments and columns.
type engine interface {
	name() string // for people
	id() string   // Caps.Engine

	// procedure returns the call of a procedure, for its columns and with that many
	// arguments.
	procedure(schema, name, columns string, args int) statement
	// session selects the number of the session.
	session() string

	// breaksLeases reports whether there is a procedure for BreakLease.
	breaksLeases() bool

	// script returns the template of Script.
	script() string
	// statements splits a script of ours into the statements that a driver runs.
	statements(script string) []string
	// grants returns GrantScript for a schema whose name was checked.
	grants(schema, role string) (string, error)

	// fault says what an error means.
	fault(err error) fault
	// readOnly says what to do about a server that can only be read.
	readOnly() string
	// examine asks the server about itself. The last query returns the server's
	// clock, at.
	examine(schema string, query func(s statement, row func(*sql.Rows) error) error) (is Server, at int64, err error)

	// source returns the driver and the data source name for a URL, with the settings
	// for the driver.
	source(u *url.URL, settings url.Values) (driver, dsn string, err error)
}

// statement returns the text of a statement for these arguments, and the arguments
// that are passed beside it.
type statement func(args []any) (text string, rest []any)

// plain is a statement without arguments.
func plain(text string) statement {
	return func([]any) (string, []any) { return text, nil }
}
