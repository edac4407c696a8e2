package sqlstore

import "net/url"

// engine is all that differs between the dialects. The procedures of all of them have
// the same names, arguments and columns.
type engine interface {
	name() string // for people
	id() string   // Caps.Engine

	// procedure returns the call of a procedure, for its columns and with that many
	// arguments.
	procedure(schema, name, columns string, args int) statement
	// batches reports whether there is a procedure that makes many steps.
	batches() bool
	// patient reports whether a waiter may block in the server for long, since the server then
	// notices that the waiter's process is dead.
	patient() bool
	// begin begins a transaction at READ COMMITTED.
	begin() []string
	// session selects the number of the session.
	session() string
	// ends selects the address and the port of the client's end of the connection and of the
	// server's, as the server sees them. It is empty if it cannot.
	ends() string

	// script returns the template of Script.
	script() string
	// statements splits a script of ours into the statements that a driver runs.
	statements(script string) []string
	// whole returns a script of ours as a server takes it in one call.
	whole(script string) string
	// grants returns the statements of GrantScript for a schema whose name was checked.
	grants(schema, role string) ([]string, error)

	// fault says what an error means.
	fault(err error) fault
	// examine asks the server about itself. The last query returns the server's
	// clock, at.
	examine(schema string, query func(s statement, each func(row) error) error) (is Server, at int64, err error)

	// source returns how to connect to the database of a URL, with the settings for the
	// driver.
	source(u *url.URL, settings url.Values) (source, error)
}

// source is how to connect to a database.
type source struct {
	driver, dsn string
	mayPrepare  bool // as in pool
}

// statement returns the text of a statement for these arguments, and the arguments
// that are passed beside it.
type statement func(args []any) (text string, rest []any)

// row is a row of a result.
type row interface {
	Scan(dest ...any) error
}

// plain is a statement without arguments.
func plain(text string) statement {
	return func([]any) (string, []any) { return text, nil }
}
