package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/nodeclock"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// records is the driver of recordstore: a table with one row for each lock.
//
// The version of the row with the empty key is the floor: no deleted row had a larger version. The
// floor is raised before rows are deleted. So a row that does not exist has the floor as its version,
// and never the same version twice.
type records struct {
	engine engine
	db     *sql.DB
	own    bool // db is closed with the store
	o      Options
	texts  texts
	bells  *bells // nil: waiters look for the lock now and then

	// explicit means that sessions do not commit by themselves, so each statement is followed
	// by a COMMIT.
	explicit bool
	// slots bounds how many statements are under way: more would not be answered sooner, and
	// each takes a process of the server.
	slots chan struct{}

	server atomic.Pointer[Server]
	asked  atomic.Int64 // when the server was last asked about itself

	clock clock.Clock
	ours  func() time.Duration
	mu    sync.Mutex
	watch nodeclock.Watch
	was   time.Duration // what ours said last
	// jumped is by how much the server's clock was seen to jump ahead, in all. Nothing was
	// written longer ago than the clock says less that.
	jumped time.Duration
	cursor string // where the next sweep begins
	swept  bool   // cursor is set

	background sync.WaitGroup
	stop       context.Context
	cancel     context.CancelFunc
}

var (
	_ recordstore.ChangeWriter = (*records)(nil)
	_ recordstore.Ringer       = (*records)(nil)
)

const (
	// atOnce is how many statements a store executes at once.
	atOnce = 32
	// contendedFor is how long a statement waits for others before it goes on regardless: these
	// may themselves wait for a transaction that relies on a lease (see Store.Hold).
	contendedFor = time.Second
	// keepIdle is how long the row of a lock that nobody uses is kept.
	keepIdle = time.Hour
)

func newRecords(db *sql.DB, own bool, d Dialect, o *Options) (*records, error) {
	e, err := d.engine()
	if err != nil {
		return nil, err
	}
	checked, err := o.checked()
	if err != nil {
		return nil, err
	}
	if own {
		db.SetMaxIdleConns(atOnce + 1)
		db.SetConnMaxIdleTime(time.Minute)
	}
	r := &records{engine: e, db: db, own: own, o: checked, texts: e.texts(checked.Schema), slots: make(chan struct{}, atOnce), clock: clock.System()}
	r.ours = driver.WallAhead(r.clock)
	if r.ours == nil {
		r.ours = func() time.Duration { return 0 }
	}
	r.stop, r.cancel = context.WithCancel(context.Background())
	if few := db.Stats().MaxOpenConnections; d == PostgreSQL && !checked.Polls && (few == 0 || few > 2) {
		r.bells = newBells(r)
	}
	return r, nil
}

// Describe implements recordstore.Driver.
func (r *records) Describe() store.Caps {
	c := store.Caps{Engine: r.engine.id(), Reach: "network", Clock: "each client's own; the database server dates what it finds", MaxTTL: r.o.MaxTTL}
	if s := r.server.Load(); s != nil {
		c.Class = s.Class()
	}
	return c
}

// Read implements recordstore.Driver.
func (r *records) Read(ctx context.Context, key string) (recordstore.Item, error) {
	r.examineAgain()
	var floor, found *row
	err := r.query(ctx, r.texts.read, func(one row) error {
		if one.key == "" {
			floor = &one
		} else {
			found = &one
		}
		return nil
	}, key)
	switch {
	case err != nil:
		return recordstore.Item{}, err
	case floor == nil:
		return recordstore.Item{}, recordstore.Refusal("%s", adviceMissing)
	case found == nil:
		return recordstore.Item{Version: strconv.FormatInt(-floor.version, 10), Floor: uint64(floor.version)}, nil
	}
	return r.item(found), nil
}

// item returns a row as an item.
func (r *records) item(one *row) recordstore.Item {
	r.mu.Lock()
	defer r.mu.Unlock()
	return recordstore.Item{
		Value: one.value, Version: strconv.FormatInt(one.version, 10),
		Written: time.UnixMicro(one.written).Add(r.jumped), Now: time.UnixMicro(one.now),
	}
}

// Write implements recordstore.Driver.
func (r *records) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	return r.WriteChange(ctx, key, value, version, recordstore.Change{Idle: idle})
}

// WriteChange implements recordstore.ChangeWriter.
func (r *records) WriteChange(ctx context.Context, key string, value []byte, version string, c recordstore.Change) (string, error) {
	was, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return "", recordstore.Refusal("version %q", version)
	}
	var next int64
	if was > 0 {
		next = versionOf(numberOf(was) + 1)
		err = r.exec(ctx, r.texts.update, next, value, c.Idle, c.Holder, key, was)
	} else {
		next = versionOf(-was + 1)
		r.sweepSometimes(key)
		err = r.exec(ctx, r.texts.insert, key, next, value, c.Idle, c.Holder, -was)
	}
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(next, 10), nil
}

// A version is the number of the record, as recordstore counts it, and some random bits: a server that
// has lost its last commits, such as a standby that was promoted, makes the same numbers again.
const randomBits = 20

func versionOf(number int64) int64 { return number<<randomBits | rand.Int64N(1<<randomBits) }

func numberOf(version int64) int64 { return version >> randomBits }

// List implements recordstore.Driver.
func (r *records) List(ctx context.Context, each func(key string, it recordstore.Item) error) error {
	return r.rows(ctx, "", func(one row) error { return each(one.key, r.item(&one)) })
}

// page is how many rows a statement lists at most.
const page = 1000

// rows calls each with the rows after a key.
func (r *records) rows(ctx context.Context, after string, each func(one row) error) error {
	for {
		var all []row
		if err := r.query(ctx, r.texts.list, func(one row) error { all = append(all, one); return nil }, after, int64(page)); err != nil {
			return err
		}
		for _, one := range all {
			if err := each(one); err != nil {
				return err
			}
			after = one.key
		}
		if len(all) < page {
			return nil
		}
	}
}

// Close implements recordstore.Driver.
func (r *records) Close() error {
	r.cancel()
	r.background.Wait()
	if !r.own {
		return nil
	}
	if err := r.db.Close(); err != nil {
		return fmt.Errorf("close %s: %w", r.engine.name(), err)
	}
	return nil
}

// row is a row of the table.
type row struct {
	key          string
	value        []byte
	version, now int64
	idle         bool
	written      int64
}

// enter waits while too many statements are under way. The caller calls leave when its own has
// ended.
func (r *records) enter(ctx context.Context) (leave func()) {
	select {
	case r.slots <- struct{}{}:
		return func() { <-r.slots }
	default:
	}
	timer := time.NewTimer(contendedFor)
	defer timer.Stop()
	select {
	case r.slots <- struct{}{}:
		return func() { <-r.slots }
	case <-timer.C:
	case <-ctx.Done():
	}
	return func() {}
}

// on executes a statement of texts with do, on one connection. database/sql would send a
// statement again after a broken connection, even if it has taken effect.
func (r *records) on(ctx context.Context, text string, args []any, do func(conn *sql.Conn, text string, args []any) error) error {
	defer r.enter(ctx)()
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return r.explain(err, true)
	}
	text, args = r.engine.bind(text, args)
	err = do(conn, text, args)
	if err == nil && r.explicit {
		if _, err = conn.ExecContext(ctx, commit); err != nil {
			discard(conn)
			return r.explain(err, false)
		}
	}
	if err != nil && (r.explicit || errors.Is(err, errReadOnly) || r.engine.fault(err).unusable) {
		discard(conn)
	} else {
		conn.Close()
	}
	if err != nil {
		return r.explain(err, false)
	}
	return nil
}

// commit ends a transaction whatever completion_type says.
const commit = "COMMIT AND NO CHAIN NO RELEASE"

// explain returns an error as recordstore understands it, with advice. unsent means that the
// statement was not sent.
func (r *records) explain(err error, unsent bool) error {
	f := r.engine.fault(err)
	switch {
	case errors.Is(err, recordstore.ErrConflict), errors.Is(err, errReadOnly):
		return err
	case f.certain && f.outcome == store.Refused && !f.again:
		return recordstore.Refusal("%w", f.explain(err))
	case unsent && errors.Is(err, context.DeadlineExceeded):
		return unapplied{fmt.Errorf("no connection within the time limit: %w", err)}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case f.again || f.certain || unsent:
		return unapplied{f.explain(err)}
	}
	return f.explain(err)
}

// unapplied is the error of a statement that has certainly had no effect. It matches
// recordstore.ErrConflict.
type unapplied struct{ error }

func (e unapplied) Unwrap() error { return e.error }

func (unapplied) Is(target error) bool { return target == recordstore.ErrConflict }

// exec executes a statement that changes one row. Its error matches recordstore.ErrConflict if
// there was none to change.
func (r *records) exec(ctx context.Context, text string, args ...any) error {
	return r.on(ctx, text, args, func(conn *sql.Conn, text string, args []any) error {
		result, err := conn.ExecContext(ctx, text, args...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(recordstore.ErrConflict, err)
		}
		return nil
	})
}

// query calls each with the rows that a statement returns.
func (r *records) query(ctx context.Context, text string, each func(one row) error, args ...any) error {
	return r.on(ctx, text, args, func(conn *sql.Conn, text string, args []any) error {
		sent := r.clock.Now()
		rows, err := conn.QueryContext(ctx, text, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var one row
			var key, value sql.RawBytes
			var readOnly bool
			if err := rows.Scan(&key, &value, &one.version, &one.idle, &one.written, &one.now, &readOnly); err != nil {
				return err
			}
			if readOnly {
				return errReadOnly
			}
			one.key = string(key)
			if one.value, err = r.engine.bytes(value); err != nil {
				return err
			}
			r.reading(sent, one.now)
			if err := each(one); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// bytes implements engine.
func (postgresql) bytes(b []byte) ([]byte, error) { return hex.DecodeString(string(b)) }

// bytes implements engine.
func (mysql) bytes(b []byte) ([]byte, error) { return bytes.Clone(b), nil }

// errReadOnly is the error of a statement that was answered by a standby or a replica, which may
// be behind.
var errReadOnly = errors.New(adviceReadOnly)

// reading takes a reading of the server's clock, in microseconds, that was asked for at sent.
func (r *records) reading(sent clock.Instant, at int64) {
	received := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	ours := r.ours()
	gained := ours - r.was
	r.was = ours
	if jump := r.watch.Observe(sent, received, clock.Instant(at)*1000); jump.Least > tolerable && !jump.Ours(gained) {
		r.jumped += jump.Most
		r.o.Logger.Warn("the database server's clock has jumped ahead: a client that finds the lock of a dead holder waits longer", "by", store.Round(jump.Least))
	}
}

// tolerable is how far a clock may jump without harm: a lease of one second has as much
// allowance for drift.
const tolerable = 10 * time.Millisecond

// discard closes a connection instead of giving it back to the pool. The server then frees
// what the session has locked. It does nothing if the connection is closed already.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return sqldriver.ErrBadConn })
	conn.Close()
}

func isConflict(err error) bool { return errors.Is(err, recordstore.ErrConflict) }
