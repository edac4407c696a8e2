package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/driver"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// databaseEngine is the engine of records, with what Hold needs.
type databaseEngine struct {
	driver.Engine
	records *records
}

// Open returns a store that connects with a driver, which the caller has imported:
// "pgx" or "postgres" for PostgreSQL, "mysql" for MySQL and MariaDB. It blocks until the
// server has answered, ctx ends or Options.Timeout passes. It does not make the table: see
// Install. o may be nil.
func Open(ctx context.Context, d Dialect, driverName, dsn string, o *Options) (*store.Store, error) {
	if _, err := d.engine(); err != nil {
		return nil, err
	}
	db, err := sql.Open(driverName, dsn)
	if err != nil {
		return nil, fmt.Errorf("open locks in %v: %w", d, err)
	}
	s, err := open(ctx, db, true, d, o)
	if err != nil {
		db.Close()
	}
	return s, err
}

// New is Open for a database handle of the caller's, who closes it after the store.
// The store works with any setting of the handle. It is slow if MaxIdleConns is
// smaller than the number of goroutines that use locks.
func New(ctx context.Context, db *sql.DB, d Dialect, o *Options) (*store.Store, error) {
	if db == nil {
		return nil, fmt.Errorf("%w: New needs a database handle", store.ErrInvalid)
	}
	return open(ctx, db, false, d, o)
}

func open(ctx context.Context, db *sql.DB, own bool, d Dialect, o *Options) (*store.Store, error) {
	r, err := newRecords(db, own, d, o)
	if err != nil {
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		r.cancel()
		r.background.Wait()
		return nil, r.failedOpen(err)
	}
	poll := 10 * time.Millisecond
	s := recordstore.New(r, &recordstore.Options{Timeout: r.o.Timeout, Poll: poll, Logger: r.o.Logger})
	return store.New(databaseEngine{s.Engine(), r}), nil
}
