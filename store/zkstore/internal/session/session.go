package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Session is one session with the servers, for leases of one class of TTLs. Its places
// are gone when it ends. It ends when the servers say so, or when nobody has used it for
// a while.
type Session struct {
	pool  *Pool
	clock clock.Clock
	// class is the longest TTL of the session's leases. The session's own timeout is
	// longer by contact.slack.
	class   time.Duration
	timeout time.Duration

	conn *zk.Conn
	// ready is closed when the session can be used.
	ready chan struct{}
	// Over is closed when the session has ended.
	Over   chan struct{}
	ending atomic.Bool  // the servers are to end the session
	zxid   atomic.Int64 // the last one of an answer

	mu      sync.Mutex
	wire    *wire // the present connection, or nil
	live    bool  // it was established, and has not failed since
	known   bool  // the server was told all identities on it
	id      uint64
	contact contact
	changed chan struct{} // closed when there is an answer or a connection; nil if nobody waits
	why     error         // why it has ended, or why there was no connection lately
	users   int
	used    time.Time // when the last user left
	dials   int       // without success, one after the other
}

// ErrOver means that a session is over, and all nodes that it had are gone.
var ErrOver = errors.New("the ZooKeeper session is over")

// start begins a session. It does not wait for it.
func (s *Pool) start(class time.Duration) *Session {
	ss := &Session{
		pool: s, clock: s.o.Clock, class: class, timeout: class + s.o.Limits.Slack(),
		ready: make(chan struct{}), Over: make(chan struct{}), used: time.Now(),
	}
	ss.contact = contact{tick: s.o.Limits.Tick, slack: s.o.Limits.Slack()}
	conn, events, err := zk.Connect(s.o.Servers, ss.timeout, zk.WithDialer(ss.dial), zk.WithHostProvider(&hosts{session: ss, servers: s.o.Servers}),
		zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil { // the list of servers is empty, which Open refuses
		ss.why = err
		close(ss.Over)
		return ss
	}
	ss.conn = conn
	s.workers.Go(func() {
		ss.prepare()
		ss.touch()
		conn.Close()
		ss.hangUp()
		for range events { // until the library's goroutines have ended
		}
	})
	return ss
}

// silent is a logger of the library: the session knows more than it says.
type silent struct{}

func (silent) Printf(string, ...any) {}

// prepare waits for the first connection and authenticates.
func (ss *Session) prepare() {
	for changes := ss.Changes(); !ss.up(); changes = ss.Changes() {
		select {
		case <-changes:
		case <-ss.Over:
			return
		}
	}
	ctx, cancel := context.WithCancel(context.Background()) // so that the end of the session ends the calls
	defer cancel()
	for _, a := range ss.pool.o.Auth {
		_, err := Again(ctx, ss, func(c *zk.Conn) (struct{}, error) {
			return struct{}{}, c.AddAuth(a.Scheme, []byte(a.ID))
		})
		if err != nil {
			ss.end(fmt.Errorf("authenticate with scheme %s: %w", a.Scheme, err))
			return
		}
	}
	close(ss.ready)
}

// hangUp closes the connection, if there is one.
func (ss *Session) hangUp() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.wire != nil {
		ss.wire.Conn.Close()
	}
}

// failed is called when a connection has failed, before or after the handshake.
func (ss *Session) failed(w *wire, err error, shaken bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if w == ss.wire {
		ss.live = false
	}
	if !shaken && ss.why == nil {
		ss.why = fmt.Errorf("%s does not serve: %w", w.RemoteAddr(), err)
	}
}

// patience is how long a server may take to answer.
func (ss *Session) patience() time.Duration { return ss.timeout / 3 }

// courtesy is how long a server may take to answer a handshake: less than patience if
// there are others that may be quicker, and more in each round through all of them.
func (ss *Session) courtesy() time.Duration {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return courtesy(ss.pool.o.Limits.Tick, ss.patience(), len(ss.pool.o.Servers), ss.dials)
}

// courtesy is Session.courtesy at the given number of attempts without success.
func courtesy(tick, patience time.Duration, servers, dials int) time.Duration {
	if servers == 1 {
		return patience
	}
	rounds := min(max(0, dials-1)/servers, 10)
	return min(tick<<rounds, patience)
}

// dial connects to a server.
func (ss *Session) dial(network, address string, _ time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), min(ss.patience(), 2*time.Second))
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-ss.Over:
			cancel()
		case <-stop:
		}
	}()
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if err != nil {
		ss.why = err
		return nil, err
	}
	ss.wire, ss.live, ss.known = newWire(c, ss), false, false
	return ss.wire, nil
}

// connected is called when a server has answered the handshake.
func (ss *Session) connected(w *wire, id uint64, granted time.Duration, e exchange, created bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	switch {
	case id == 0:
		ss.endLocked(fmt.Errorf("%w: the servers have not heard of this process for %v and ended it", ErrOver, ss.timeout))
		return
	case granted < ss.timeout:
		ss.endLocked(fmt.Errorf("the server grants sessions of at most %v, and leases of %v need %v: raise maxSessionTimeout on every server", granted, ss.class, ss.timeout))
		return
	}
	ss.id, ss.dials, ss.wire, ss.live, ss.why = id, 0, w, true, nil
	ss.known = ss.known || len(ss.pool.o.Auth) == 0
	ss.contact.connected(e, created)
	ss.notifyLocked()
}

// introduced is called when a server was told so many identities. It takes them before what
// is sent later.
func (ss *Session) introduced(w *wire, identities int) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if w == ss.wire && identities >= len(ss.pool.o.Auth) {
		ss.known = true
		ss.notifyLocked()
	}
}

// answered is called when the leader has answered a request.
func (ss *Session) answered(w *wire, e exchange, wrote bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if w == ss.wire {
		ss.contact.answered(e, wrote)
		ss.notifyLocked()
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

// Changes returns a channel that is closed at the next answer or connection.
func (ss *Session) Changes() <-chan struct{} {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.changedLocked()
}

// up reports whether the session was established.
func (ss *Session) up() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.id != 0
}

// contacts returns what the session's contact has concluded and, if that does not reach at
// yet, a channel that is closed when it may have changed.
func (ss *Session) contacts(at clock.Instant) (proven, written clock.Instant, changes <-chan struct{}) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.contact.proven < at {
		changes = ss.changedLocked()
	}
	return ss.contact.proven, ss.contact.written, changes
}

// Reason returns why the session is over, or why there is no connection.
func (ss *Session) Reason() error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.why
}

// Class returns the longest TTL of the session's leases.
func (ss *Session) Class() time.Duration { return ss.class }

// Ended reports whether the session is over.
func (ss *Session) Ended() bool {
	select {
	case <-ss.Over:
		return true
	default:
		return false
	}
}

// end gives the session up. The servers notice when its timeout has passed, unless ending
// is set.
func (ss *Session) end(why error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.endLocked(why)
}

// close gives the session up, and has the servers end it if there is nothing in it.
func (ss *Session) close() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.ending.Store(ss.users == 0)
	ss.endLocked(errClosed)
}

func (ss *Session) endLocked(why error) {
	if ss.Ended() {
		return
	}
	ss.why = why
	close(ss.Over)
}

// touch makes the servers hear of the session until it is over. If a server does not
// answer, it connects to another.
func (ss *Session) touch() {
	ticker := time.NewTicker(touchInterval(ss.pool.o.Limits.Tick))
	defer ticker.Stop()
	answered := make(chan struct{}, 1)
	answered <- struct{}{}
	since := time.Now()
	for {
		select {
		case <-ss.Over:
			return
		case <-ticker.C:
		}
		if ss.pool.retire(ss) {
			return
		}
		select {
		case <-answered:
			since = time.Now()
			go func() {
				_, _ = ss.conn.Sync(ss.pool.o.Base) // wire observes the answer
				answered <- struct{}{}
			}()
		default:
			if time.Since(since) > ss.patience() {
				ss.mu.Lock()
				if ss.wire != nil {
					ss.why = fmt.Errorf("%s has not answered for %v", ss.wire.RemoteAddr(), time.Since(since).Round(time.Millisecond))
					ss.wire.Conn.Close()
				}
				ss.mu.Unlock()
				since = time.Now()
			}
		}
	}
}
