package sqlstore

import (
	"context"
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

// engine is all that differs between the dialects.
type engine interface {
	name() string // for people
	id() string   // Caps.Engine

	// texts returns the statements on the table of a schema.
	texts(schema string) texts
	// bind returns a statement of texts for these arguments, and those that are passed
	// beside it.
	bind(text string, args []any) (string, []any)
	// bytes returns the value of a column that was selected as texts does.
	bytes(column []byte) ([]byte, error)

	// script returns the statements that make the table in a schema.
	script(schema string) []string
	// grants returns the statements that give a role the least rights that a store needs.
	grants(schema, role string) ([]string, error)

	// fault says what an error means.
	fault(err error) fault
	// examine asks the server about itself.
	examine(ctx context.Context, db *sql.DB) (Server, error)
	// over reports whether err, of hold, means that the lease is over.
	over(err error) bool
	// inTransaction reports whether a transaction of the caller's is one, after hold has returned
	// mark in it.
	inTransaction(ctx context.Context, tx Tx, mark int64) (bool, error)

	// source returns how to connect to the database of a URL, with the settings for the
	// driver.
	source(u *url.URL, settings url.Values) (source, error)
}

// texts are the statements on the table, with a ? for each argument. Each is complete in
// itself: no transaction is open between two of them.
type texts struct {
	read   string // key: the rows of the floor and of the record; see row
	insert string // floor, key, version, value, idle, holder
	update string // the next version, value, idle, holder, key, version
	list   string // key, limit: rows after the key
	remove string // key, version, what Written must be before
	raise  string // number: raises the floor above it
	hold   string // key, holder: one number, or an error; see engine.over
}

// source is how to connect to a database.
type source struct {
	driver, dsn string
}

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
