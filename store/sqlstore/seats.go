package sqlstore

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// seats are the connections that the store keeps for waiting. The session of a seat
// takes a lock of the server, the signal, that the next waiter waits for. A waiter
// keeps its seat when it is granted the lock, until it releases the lock.
type seats struct {
	s *caller
	// pooled is set if sessions do not last, since a pooler gives each transaction
	// to any of them. No signal is taken then, nor before probed is set.
	pooled, probed atomic.Bool

	mu      sync.Mutex
	probing chan struct{} // closed when the probe under way has ended; nil: none is
	most    int
	taken   int
	until   time.Time // no seat and no probe before: the server had no connection left
	held    map[leaseKey]*seat
	closed  bool
	polled  string // why waiters poll
}

type leaseKey struct{ name, owner string }

func keyOf(l store.Lease) leaseKey { return leaseKey{l.Name, l.Owner} }

// seat is one connection. Only one call uses it at a time.
type seat struct {
	conn    *sql.Conn
	signal  int64
	session int64 // the server's process; 0: not known yet
	// timer ends the seat of a lease that was neither renewed nor released.
	timer *time.Timer
}

func newSeats(s *caller) *seats {
	return &seats{s: s, most: s.o.Connections, held: make(map[leaseKey]*seat)}
}

// limit returns how many seats there may be. Other calls need connections, too. The user of a handle
// can change its limit at any time.
func (t *seats) limit() int {
	if open := t.s.pool.db.Stats().MaxOpenConnections; open > 0 {
		return min(t.most, open/2)
	}
	return t.most
}

// known reports whether it is known if sessions last.
func (t *seats) known() bool { return t.probed.Load() || t.pooled.Load() }

// mayLast reports whether a probe has to find out if sessions last.
func (t *seats) mayLast() bool { return !t.known() && t.limit() > 0 }

// last reports whether sessions are known to last.
func (t *seats) last() bool { return t.probed.Load() && !t.pooled.Load() }

// probeDirect finds out whether sessions last if a connection shows that by itself.
func (t *seats) probeDirect(ctx context.Context) {
	if !t.mayLast() {
		return
	}
	conn, err := t.s.pool.conn(ctx)
	if err != nil {
		return
	}
	defer conn.Close()
	if direct(ctx, t.s.engine, conn) {
		t.probed.Store(true)
	}
}

// probe finds out whether sessions last, unless that is known, and waits for the result
// until ctx ends. The caller is counted at the gate.
func (t *seats) probe(ctx context.Context) {
	select {
	case <-t.startProbe(ctx):
	case <-ctx.Done():
	}
}

// startProbe is probe without waiting. The channel is closed when the probe has ended.
func (t *seats) startProbe(ctx context.Context) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.probing != nil {
		return t.probing
	}
	done := make(chan struct{})
	if !t.mayLast() || time.Now().Before(t.until) {
		close(done)
		return done
	}
	t.probing = done
	ctx = context.WithoutCancel(ctx)
	t.s.gate.Stay()
	go func() {
		defer t.s.gate.Leave()
		known := t.compareSessions(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.probing = nil
		t.probed.Store(known)
		if !known {
			t.restLocked()
		}
		close(done)
	}()
	return done
}

// probeUnderWay returns the channel of a probe that has not ended, or nil.
func (t *seats) probeUnderWay() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.probing
}

// compareSessions finds out whether sessions last: no two open connections have the same
// one. It returns false if it cannot tell. It takes two connections, so it is called only
// when it matters.
func (t *seats) compareSessions(ctx context.Context) (known bool) {
	ctx, cancel := t.s.gate.Until(ctx)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, t.s.o.Timeout)
	defer stop()
	session := func(conn querier) (n int64) {
		if rows(ctx, conn, false, plain(t.s.engine.session()), func(r row) error { return r.Scan(&n) }) != nil {
			return 0
		}
		return n
	}
	a, err := t.s.pool.conn(ctx)
	if err != nil {
		return false
	}
	defer a.Close()
	b, err := t.s.pool.conn(ctx)
	if err != nil {
		return false
	}
	defer b.Close()
	// Others may use the pooler meanwhile, so that each connection gets the session that
	// it had, by chance.
	const rounds = 8
	before := session(a)
	for range rounds {
		tx, err := b.BeginTx(ctx, nil)
		if err != nil && strings.Contains(err.Error(), "statement pooling mode") { // as PgBouncer says
			t.poll("a pooler gives statements to any session")
			break
		}
		if err != nil {
			return false
		}
		other, after := session(tx), session(a)
		tx.Rollback()
		if before == 0 || other == 0 || after == 0 {
			return false
		}
		if before == other || before != after {
			t.poll("a pooler gives transactions to any session")
			break
		}
	}
	return true
}

// poll makes all waiters ask now and then, from now on.
func (t *seats) poll(why string) {
	if !t.pooled.Swap(true) {
		t.mu.Lock()
		t.polled = why
		t.mu.Unlock()
		t.s.o.Logger.Warn("waiters will poll, since the server cannot wake them through this connection", "why", why)
	}
}

// why returns why waiters poll, or an empty string.
func (t *seats) why() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.polled
}

// take returns a seat, or nil if there is none.
func (t *seats) take(ctx context.Context) *seat {
	t.mu.Lock()
	if t.closed || t.taken >= t.limit() || !t.last() || time.Now().Before(t.until) {
		t.mu.Unlock()
		return nil
	}
	t.taken++
	t.mu.Unlock()
	t.s.pool.prepare()
	conn, err := t.s.pool.conn(ctx)
	if err != nil {
		t.mu.Lock()
		t.taken--
		if ctx.Err() == nil {
			t.restLocked()
		}
		t.mu.Unlock()
		return nil
	}
	return &seat{conn: conn, signal: newSignal()}
}

// restLocked asks the server for no more connections for a while.
func (t *seats) restLocked() {
	const rest = 10 * time.Second
	t.until = time.Now().Add(rest)
}

// newSignal returns a signal that no session has.
func newSignal() int64 { return 1 + rand.Int64N(1<<62) }

// back gives the connection back to the pool. Its session has not taken the signal,
// or has given it.
func (t *seats) back(one *seat) {
	one.conn.Close()
	t.free()
}

// drop closes the connection, and with it the session and its signal.
func (t *seats) drop(one *seat) {
	discard(one.conn)
	t.free()
}

func (t *seats) free() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
}

// same checks that the seat still has its session.
func (t *seats) same(one *seat, session int64) {
	if one.session != 0 && one.session != session {
		t.poll("the session of a connection has changed")
	}
	one.session = session
}

// keep keeps the seat for a lease that was granted.
func (t *seats) keep(one *seat, l store.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		go t.drop(one)
		return
	}
	if before := t.held[keyOf(l)]; before != nil { // of another attempt of the owner
		before.timer.Stop()
		go t.drop(before)
	}
	one.timer = time.AfterFunc(l.TTL, func() { t.expire(l, one) })
	t.held[keyOf(l)] = one
}

// expire drops the seat of a lease that has ended.
func (t *seats) expire(l store.Lease, one *seat) {
	t.mu.Lock()
	is := t.held[keyOf(l)] == one
	if is {
		delete(t.held, keyOf(l))
	}
	t.mu.Unlock()
	if is {
		t.drop(one)
	}
}

// renewed keeps the seat of a lease for longer.
func (t *seats) renewed(l store.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.held[keyOf(l)]; one != nil {
		one.timer.Reset(l.TTL)
	}
}

// leave takes the seat of a lease from it and returns the seat, or nil if there is none.
func (t *seats) leave(l store.Lease) *seat {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.held[keyOf(l)]
	if one != nil {
		one.timer.Stop()
		delete(t.held, keyOf(l))
	}
	return one
}

// offer takes a signal for a lease that was granted without one and that somebody
// now waits for, in the background. The caller is counted at the gate.
func (t *seats) offer(ctx context.Context, l store.Lease) {
	t.mu.Lock()
	has := t.held[keyOf(l)] != nil
	t.mu.Unlock()
	if has {
		return
	}
	ctx = context.WithoutCancel(ctx)
	t.s.gate.Stay()
	go func() {
		defer t.s.gate.Leave()
		t.probe(ctx) // a process that has not waited does not know yet
		one := t.take(ctx)
		if one == nil {
			return
		}
		var taken bool
		_, err := t.s.callOnce(ctx, 0, one.conn, t.s.calls.takeSignal, func(r row) error { return r.Scan(&taken, &one.session) },
			[]byte(l.Name), l.Owner, one.signal)
		switch {
		case err != nil:
			t.drop(one)
		case !taken:
			t.back(one)
		default:
			t.keep(one, l)
		}
	}()
}

// close drops all seats. No lease ends with them.
func (t *seats) close() {
	t.mu.Lock()
	t.closed = true
	held := t.held
	t.held = make(map[leaseKey]*seat)
	t.mu.Unlock()
	for _, one := range held {
		one.timer.Stop()
		t.drop(one)
	}
}
