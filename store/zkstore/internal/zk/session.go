package zk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Session is one session with the servers, for leases of one class of TTLs. Its nodes
// are gone when it ends.
type Session struct {
	pool *Pool
	// class is the longest TTL of the session's leases, and timeout that of the session, which is
	// longer by contact.slack.
	class, timeout time.Duration
	// Over is closed when the session has ended.
	Over   <-chan struct{}
	over   context.Context // ends then, for that reason
	finish context.CancelCauseFunc

	mu      sync.Mutex
	conn    *conn  // the present connection, or nil
	id      int64  // 0 until it is established
	word    []byte // its password
	zxid    int64  // the last one of an answer
	contact contact
	changed chan struct{}       // closed when there is an answer or a connection; nil if nobody waits
	why     error               // why there was no connection lately
	dials   int                 // attempts since there was a connection that lasted
	served  time.Time           // when it last had a connection
	asked   clock.Instant       // when a write was asked for that proves that the session lives
	watches map[string][]*Watch // by the paths of their nodes
}

// ErrOver means that a session is over. Its nodes are gone, or nobody keeps them alive.
var ErrOver = errors.New("the ZooKeeper session is over")

// newSession returns a session that is to be run.
func (s *Pool) newSession(class time.Duration) *Session {
	ss := &Session{pool: s, class: class, timeout: class + s.o.Limits.Slack(), watches: make(map[string][]*Watch), contact: contact{tick: s.o.Limits.Tick, slack: s.o.Limits.Slack()}}
	ss.over, ss.finish = context.WithCancelCause(context.Background())
	ss.Over = ss.over.Done()
	return ss
}

// run connects to one server after the other, in the order of the pool, so that all sessions of
// a pool begin with one server. It pauses when no server of a round had a connection that lasted.
func (ss *Session) run() {
	servers := ss.pool.o.Servers
	for next := 0; !ss.Ended(); next++ {
		server := servers[next%len(servers)]
		c, err := ss.connect(server)
		if err == nil {
			if lasted := ss.serve(c); lasted {
				continue
			}
		}
		ss.mu.Lock()
		ss.dials++
		if err != nil {
			ss.why = err
		}
		late := ss.id != 0 && time.Since(ss.served) > ss.timeout
		rounds, left := ss.dials/len(servers), ss.dials%len(servers)
		ss.mu.Unlock()
		if late && errors.Is(err, errNoServer) && ss.servesOthers(server) {
			ss.finish(fmt.Errorf("%w: %w", ErrOver, errEarlier))
		}
		if left == 0 {
			pause := min(20*time.Millisecond<<min(rounds, 5), 500*time.Millisecond)
			clock.Sleep(ss.over, pause/2+rand.N(pause/2))
		}
	}
}

// errEarlier is why a session is over that the servers refuse to go on with.
var errEarlier = errors.New("the servers serve others and refuse to go on with it: perhaps their data were lost or restored from a backup")

// servesOthers reports whether a server that has refused this session grants a new one.
func (ss *Session) servesOthers(server string) bool {
	ctx, cancel := context.WithTimeout(ss.over, ss.patience())
	defer cancel()
	_, err := granted(ctx, server, ss.pool.o.Limits.Tick)
	return err == nil
}

// patience returns how long a server may take to answer.
func (ss *Session) patience() time.Duration { return ss.timeout / 3 }

// courtesy returns how long a server may take to answer a handshake, after so many attempts
// without success: at first less than patience, since others may be quicker, and more in each round
// through all of them.
func courtesy(tick, patience time.Duration, servers, dials int) time.Duration {
	return min(tick<<min(dials/servers, 10), patience)
}

// connect connects to a server, does the handshake and gives it the identities.
func (ss *Session) connect(server string) (*conn, error) {
	o := &ss.pool.o
	ss.mu.Lock()
	zxid, h, limit := ss.zxid, handshake{ss.timeout, ss.id, ss.word}, courtesy(o.Limits.Tick, ss.patience(), len(o.Servers), ss.dials)
	ss.mu.Unlock()
	ctx, cancel := context.WithTimeout(ss.over, limit)
	defer cancel()
	socket, err := dial(ctx, server)
	if err != nil {
		return nil, err
	}
	sent := o.Clock.Now()
	in, w, err := meet(ctx, socket, zxid, h, o.Auth...)
	switch {
	case errors.Is(err, ErrAuthFailed):
		ss.finish(err)
	case err == nil && w.id == 0:
		ss.finish(fmt.Errorf("%w: the servers have received nothing from this process for %v, and ended it", ErrOver, ss.timeout))
	case err == nil && w.timeout < ss.timeout:
		ss.finish(fmt.Errorf("the server grants sessions of at most %v, and leases of %v need %v: raise maxSessionTimeout on every server", w.timeout, ss.class, ss.timeout))
	}
	if err = cmp.Or(err, context.Cause(ss.over)); err != nil {
		socket.Close()
		return nil, fmt.Errorf("%s does not serve: %w", server, err)
	}
	c := &conn{Conn: socket, session: ss, in: in}
	ss.begin(c, w, exchange{sent, o.Clock.Now()})
	return c, nil
}

// begin takes a connection on which a server has answered the handshake.
func (ss *Session) begin(c *conn, w handshake, e exchange) {
	c.start()
	c.watchAgain()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	created := ss.id == 0
	ss.conn, ss.id, ss.word, ss.why = c, w.id, w.password, nil
	ss.contact.connected(e, created)
	ss.asked = 0 // an earlier write proves nothing on this connection
	ss.notifyLocked()
}

// serve keeps the session alive on a connection until that breaks or the session is over. A server
// that does not answer is left. The connection has lasted if a touch was answered and the next one sent.
func (ss *Session) serve(c *conn) (lasted bool) {
	defer func() { <-c.gone }()
	ticker := time.NewTicker(touchInterval(ss.pool.o.Limits.Tick))
	defer ticker.Stop()
	touch := c.touch()
	for {
		select {
		case <-c.gone:
			return lasted
		case <-ss.Over:
			c.leave(context.Cause(ss.over) == errClosed)
			return lasted
		case <-ticker.C:
		}
		select {
		case <-touch.done:
			if errors.Is(touch.answers[0].Err, ErrLost) {
				continue // c.gone is about to be closed
			}
			ss.mu.Lock()
			ss.dials = 0
			ss.mu.Unlock()
			lasted, touch = true, c.touch()
		default:
		}
	}
}

// touch asks the leader for a sign of life, which has to come in time.
func (c *conn) touch() *batch {
	_ = c.SetReadDeadline(time.Now().Add(c.session.patience()))
	return c.ask(Sync(c.session.pool.o.Base))
}

// answered takes an answer, before its request gets it.
func (ss *Session) answered(op int32, e exchange, zxid int64, ok bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.zxid = max(ss.zxid, zxid)
	if !ok {
		return
	}
	switch op {
	case opSync:
		ss.contact.answered(e, false)
	case opCreate2, opCreateContainer, opDelete, opSetData, opMulti:
		ss.contact.answered(e, true)
	}
	ss.notifyLocked()
}

// lost is called when nothing more will be answered on a connection.
func (ss *Session) lost(c *conn, why error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.conn == c {
		ss.conn, ss.why, ss.served = nil, why, time.Now()
	}
}

func (ss *Session) notifyLocked() {
	if ss.changed != nil {
		close(ss.changed)
		ss.changed = nil
	}
}

func (ss *Session) changedLocked() <-chan struct{} {
	if ss.changed == nil {
		ss.changed = make(chan struct{})
	}
	return ss.changed
}

// reach waits until there is a connection, and returns it.
func (ss *Session) reach(ctx context.Context) (*conn, error) {
	for {
		ss.mu.Lock()
		if c := ss.conn; c != nil {
			ss.mu.Unlock()
			return c, ctx.Err()
		}
		changed := ss.changedLocked()
		ss.mu.Unlock()
		select {
		case <-changed:
		case <-ss.Over:
			return nil, ss.Reason()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Zxid returns the last transaction that the servers have told of.
func (ss *Session) Zxid() int64 {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.zxid
}

// Reason returns why the session is over, or why there is no connection.
func (ss *Session) Reason() error {
	if ss.Ended() {
		return context.Cause(ss.over)
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.why
}

// Class returns the longest TTL of the session's leases.
func (ss *Session) Class() time.Duration { return ss.class }

// Ended reports whether the session is over.
func (ss *Session) Ended() bool { return ss.over.Err() != nil }
