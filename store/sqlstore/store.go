package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/driver"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// databaseEngine is the engine of records, with what Hold needs.
type databaseEngine struct {
	driver.Engine
	records *records
}

// Open returns a store in the database that a URL names:
//
//	postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?schema=leasehold
//	mysql://USER:PASSWORD@HOST:PORT/DATABASE?schema=leasehold
//
// ParseURL describes such URLs. A nil o means the defaults. Open blocks until the server has
// answered, ctx ends or Options.Timeout passes. It does not make the table: see Install. If the
// URL or the options are wrong, the error matches store.ErrInvalid, and if the program has imported
// no driver, store.ErrUnsupported. It contains no password.
func Open(ctx context.Context, url string, o *Options) (*store.Store, error) {
	u, c, err := parse(url, o)
	if err != nil {
		return nil, err
	}
	db, err := u.OpenDB()
	if err != nil {
		return nil, fmt.Errorf("open locks in %v: %w", u.Dialect, err)
	}
	s, err := open(ctx, db, true, u.Dialect, &c)
	if err != nil {
		db.Close()
	}
	return s, err
}

// parse returns what a URL says, and the options with it.
func parse(url string, o *Options) (URL, Options, error) {
	u, err := ParseURL(url)
	if err != nil {
		return u, u.Options, err
	}
	c, err := settings.Join(o, u.Options)
	return u, c, err
}

// New is Open for a database handle of the caller's, of any driver, who closes it after the store.
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
