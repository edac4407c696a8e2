package sqlstore

import (
	"database/sql"
	"fmt"
	"net/url"

	"github.com/leasehold-dev/leasehold/store"
)

// Dialect is a kind of database. The zero value is not valid.
type Dialect uint8

// The dialects.
const (
	PostgreSQL Dialect = iota + 1 // PostgreSQL 14 or later
	MySQL                         // MySQL 8.0 or later, or MariaDB 10.6 or later
)

// engines are what the package knows about the dialects.
var engines = map[Dialect]engine{PostgreSQL: postgresql{}, MySQL: mysql{}}

func (d Dialect) String() string {
	if e := engines[d]; e != nil {
		return e.name()
	}
	return fmt.Sprintf("dialect %d", uint8(d))
}

// engine returns what the package knows about the dialect.
func (d Dialect) engine() (engine, error) {
	if e := engines[d]; e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("%w: %v: use PostgreSQL or MySQL", store.ErrInvalid, d)
}

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

// calls are all calls, made once.
type calls struct {
	ask, await, release, renew, takeSignal, reserve, inspect, list, hold, sweep statement
}

func callsIn(e engine, schema string) calls {
	const answer = "verdict, token, spare, ends_in, owner, meta, position, ahead, waited, refreshed, at, session"
	call := func(name, columns string, args int) statement { return e.procedure(schema, name, columns, args) }
	return calls{
		ask:        call("ask", answer, 10),
		await:      call("await", answer, 5),
		release:    call("release", "done, at, session", 7),
		renew:      call("renew", "held, at", 4),
		takeSignal: call("take_signal", "taken, session", 3),
		reserve:    call("reserve", "held, token, count, waiting, at", 5),
		inspect:    call("inspect", "position, owner, meta, token, ends_in", 2),
		list:       call("list", "name, owner, meta, token, ends_in", 3),
		hold:       call("hold", "hold", 2),
		sweep:      call("sweep", "sweep", 1),
	}
}
