package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// rows runs a query and scans each of its rows. With prepare, a connection prepares it first,
// unless it has done so before (see pool.mayPrepare).
func rows(ctx context.Context, q querier, prepare bool, query statement, each func(row) error, args ...any) error {
	text, rest := query(args)
	if conn, is := q.(*sql.Conn); is {
		if err := driverRows(ctx, conn, prepare, text, rest, each); !errors.Is(err, driver.ErrSkip) {
			return err
		}
	}
	r, err := q.QueryContext(ctx, text, rest...)
	if err != nil {
		return err
	}
	defer r.Close()
	for r.Next() {
		if err := each(r); err != nil {
			return err
		}
	}
	return cmp.Or(r.Err(), r.Close())
}

// driverRows asks the driver itself. An sql.Rows starts a goroutine for each query, which
// watches a context that the driver watches, too.
// It returns driver.ErrSkip, and has sent nothing, if the driver cannot take the query so.
func driverRows(ctx context.Context, conn *sql.Conn, prepare bool, text string, args []any, each func(row) error) error {
	return conn.Raw(func(of any) error {
		named := make([]driver.NamedValue, len(args))
		for i, arg := range args {
			// Every driver takes our types: see driver.IsValue.
			named[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
		}
		r, err := driverQuery(ctx, of, prepare, text, named)
		if err != nil {
			return err
		}
		one := make(driverRow, len(r.Columns()))
		for err == nil {
			if err = r.Next(one); err == nil {
				err = each(one)
			}
		}
		if err == io.EOF {
			err = nil
		}
		return cmp.Or(err, r.Close())
	})
}

// driverQuery starts a query on a connection of the driver.
func driverQuery(ctx context.Context, conn any, prepare bool, text string, args []driver.NamedValue) (driver.Rows, error) {
	if p, is := conn.(driver.ConnPrepareContext); prepare && is {
		st, err := p.PrepareContext(ctx, text) // it stays open for the next call
		if err != nil {
			return nil, err
		}
		return st.(driver.StmtQueryContext).QueryContext(ctx, args)
	}
	if q, is := conn.(driver.QueryerContext); is {
		return q.QueryContext(ctx, text, args)
	}
	return nil, driver.ErrSkip
}

// driverRow is a row as a driver returns it.
type driverRow []driver.Value

// Scan implements row.
func (r driverRow) Scan(dest ...any) error {
	if len(dest) != len(r) {
		return fmt.Errorf("a row has %d columns, and %d are expected", len(r), len(dest))
	}
	for i, d := range dest {
		if err := assign(d, r[i]); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// assign stores a column in what dest points to, as an sql.Rows does.
func assign(dest any, v driver.Value) error {
	switch d := dest.(type) {
	case sql.Scanner:
		return d.Scan(v)
	case *string:
		return assignTo(d, v)
	case *bool:
		return assignTo(d, v)
	case *int64:
		return assignTo(d, v)
	case *int:
		return assignTo(d, v)
	}
	return fmt.Errorf("no column is stored in a %T", dest)
}

func assignTo[T any](dest *T, v driver.Value) error {
	if same, is := v.(T); is {
		*dest = same
		return nil
	}
	var other sql.Null[T] // which converts
	err := other.Scan(v)
	if err == nil && !other.Valid {
		err = errors.New("null")
	}
	*dest = other.V
	return err
}
