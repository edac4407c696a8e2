package sqlstore

import (
	"fmt"

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
