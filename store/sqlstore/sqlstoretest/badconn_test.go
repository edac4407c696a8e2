package sqlstoretest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// A driver may say ErrBadConn of a call that the server has carried out, as lib/pq does. The call
// is made again, and what the first one did is not taken for the work of another client. The grant says
// that the first one may still be in flight.
func TestBadConnectionAfterTheCall(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		schema := on.newSchema(t)
		d := on.handle(t).Driver()
		f := &forgetful{dsn: on.dsn(), driver: d}
		db := sql.OpenDB(f)
		t.Cleanup(func() { db.Close() })
		s, err := sqlstore.New(t.Context(), db, on.dialect, &sqlstore.Options{Schema: schema})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		for _, call := range []string{".ask(", ".release("} {
			l := lease("x")
			if call == ".ask(" {
				f.forgets.Store(&call)
			}
			if g := mustAcquire(t, s, l); g.Repeated != (call == ".ask(") {
				t.Errorf("the grant says that its request may still be in flight: %v, and the answer to %s was forgotten", g.Repeated, call)
			}
			if call == ".release(" {
				f.forgets.Store(&call)
			}
			mustRelease(t, s, l)
			if f.forgets.Load() != nil {
				t.Fatalf("no answer to %s was forgotten", call)
			}
		}
		// A request that is refused may still be in flight, too.
		call, holder, late := ".ask(", lease("x"), lease("x")
		mustAcquire(t, s, holder)
		f.forgets.Store(&call)
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: late}); !errors.Is(err, store.ErrBusy) {
			t.Errorf("acquire what another owner holds: %v, want %v", err, store.ErrBusy)
		}
		eventually.True(t, "the late request is refused", func() bool {
			_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: late})
			return errors.Is(err, store.ErrNotHeld)
		})
		mustRelease(t, s, holder)
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: lease("x")}); !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("release of what is not held: %v", err)
		}
	})
}

// forgetful connects by another driver. It forgets the answer to the next call that has the text
// forgets, and says ErrBadConn instead.
type forgetful struct {
	dsn     string
	driver  driver.Driver
	forgets atomic.Pointer[string]
}

func (f *forgetful) Driver() driver.Driver { return f.driver }

func (f *forgetful) Connect(context.Context) (driver.Conn, error) {
	c, err := f.driver.Open(f.dsn)
	if err != nil {
		return nil, err
	}
	return &forgetfulConn{c, f}, nil
}

type forgetfulConn struct {
	driver.Conn
	f *forgetful
}

// QueryContext implements driver.QueryerContext.
func (c *forgetfulConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	match := c.f.forgets.Load()
	if err != nil || match == nil || !strings.Contains(query, *match) || !c.f.forgets.CompareAndSwap(match, nil) {
		return rows, err
	}
	values := make([]driver.Value, len(rows.Columns()))
	for err == nil {
		err = rows.Next(values)
	}
	if rows.Close(); !errors.Is(err, io.EOF) {
		return nil, err
	}
	return nil, driver.ErrBadConn
}

// ExecContext implements driver.ExecerContext.
func (c *forgetfulConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}
