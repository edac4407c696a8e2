package zkstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// session is one session with the servers, for leases of one class of TTLs. Its places
// are gone when it ends. It ends when the servers say so, or when nobody has used it for
// a while.
type session struct {
	s     *Store
	clock clock.Clock
	// class is the longest TTL of the session's leases. The session's own timeout is
	// longer by contact.slack.
	class   time.Duration
	timeout time.Duration

	conn *zk.Conn
	// ready is closed when the session can be used; over when it has ended.
	ready, over chan struct{}
	ending      atomic.Bool // the servers are to end the session

	mu      sync.Mutex
	wire    *wire // the present connection, or nil
	id      uint64
	contact contact
	changed chan struct{} // closed, and replaced, when there is an answer or a connection
	why     error         // why it has ended, or why there was no connection lately
	users   int
	used    time.Time        // when the last user left
	zxids   map[string]int64 // of the nodes that were made, by path, until they are fetched
	dials   int              // without success, one after the other
}

// errSessionOver is why a place or a lease is gone with its session.
var errSessionOver = errors.New("the ZooKeeper session is over")

// start begins a session. It does not wait for it.
func (s *Store) start(class time.Duration) *session {
	ss := &session{
		s: s, clock: s.clock, class: class, timeout: class + s.limits.slack(),
		ready: make(chan struct{}), over: make(chan struct{}), changed: make(chan struct{}),
		used: time.Now(), zxids: make(map[string]int64),
	}
	ss.contact = contact{tick: s.limits.tick, slack: s.limits.slack()}
	conn, events, err := zk.Connect(s.o.Servers, ss.timeout, zk.WithDialer(ss.dial), zk.WithHostProvider(&hosts{session: ss}),
		zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil { // the list of servers is empty, which Open refuses
		ss.why = err
		close(ss.over)
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
func (ss *session) prepare() {
	for !ss.up() {
		select {
		case <-ss.changes():
		case <-ss.over:
			return
		}
	}
	for _, a := range ss.s.o.Auth {
		_, err := again(context.Background(), ss, func(c *zk.Conn) (struct{}, error) {
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
func (ss *session) hangUp() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.wire != nil {
		ss.wire.Conn.Close()
	}
}

// refused is called when a server has ended a connection before the handshake.
func (ss *session) refused(w *wire, err error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.why == nil {
		ss.why = fmt.Errorf("%s does not serve: %w", w.RemoteAddr(), err)
	}
}

// patience is how long a server may take to answer.
func (ss *session) patience() time.Duration { return ss.timeout / 3 }

// dial connects to a server.
func (ss *session) dial(network, address string, _ time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), min(ss.patience(), 2*time.Second))
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-ss.over:
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
	ss.wire = newWire(c, ss)
	return ss.wire, nil
}

// connected is called when a server has answered the handshake.
func (ss *session) connected(w *wire, id uint64, granted time.Duration, e exchange, created bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	switch {
	case id == 0:
		ss.endLocked(fmt.Errorf("%w: the servers have not heard of this process for %v and ended it", errSessionOver, ss.timeout))
		return
	case granted < ss.timeout:
		ss.endLocked(fmt.Errorf("the server grants sessions of at most %v, and leases of %v need %v: raise maxSessionTimeout on every server", granted, ss.class, ss.timeout))
		return
	}
	ss.id, ss.dials, ss.wire, ss.why = id, 0, w, nil
	ss.contact.connected(e, created)
	ss.notifyLocked()
}

// answered is called when the leader has answered a request.
func (ss *session) answered(w *wire, e exchange, wrote bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if w == ss.wire {
		ss.contact.answered(e, wrote)
		ss.notifyLocked()
	}
}

// made remembers the zxid of a node.
func (ss *session) made(path string, czxid int64) {
	if !strings.Contains(path, lockWord) {
		return
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.zxids[path] = czxid
}

// czxid returns the zxid of a node that was made in this session, once.
func (ss *session) czxid(path string) int64 {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	z := ss.zxids[path]
	delete(ss.zxids, path)
	return z
}

func (ss *session) notifyLocked() {
	close(ss.changed)
	ss.changed = make(chan struct{})
}

// changes returns a channel that is closed at the next answer or connection.
func (ss *session) changes() <-chan struct{} {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.changed
}

// up reports whether the session was established.
func (ss *session) up() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.id != 0
}

// contacts returns what the session's contact has concluded, and a channel that is closed
// when that may change.
func (ss *session) contacts() (proven, written clock.Instant, changes <-chan struct{}) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.contact.proven, ss.contact.written, ss.changed
}

// reason returns why the session is over, or why there is no connection.
func (ss *session) reason() error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.why
}

// server returns the address of the present server, or of all.
func (ss *session) server() string {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.wire != nil {
		return ss.wire.RemoteAddr().String()
	}
	return ss.s.node
}

// ended reports whether the session is over.
func (ss *session) ended() bool {
	select {
	case <-ss.over:
		return true
	default:
		return false
	}
}

// end gives the session up. The servers notice when its timeout has passed, unless ending
// is set.
func (ss *session) end(why error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.endLocked(why)
}

func (ss *session) endLocked(why error) {
	if ss.ended() {
		return
	}
	ss.why = why
	close(ss.over)
}

// touch makes the servers hear of the session until it is over. If a server does not
// answer, it connects to another.
func (ss *session) touch() {
	ticker := time.NewTicker(touchInterval(ss.s.limits.tick))
	defer ticker.Stop()
	answered := make(chan struct{}, 1)
	answered <- struct{}{}
	since := time.Now()
	for {
		select {
		case <-ss.over:
			return
		case <-ticker.C:
		}
		if ss.s.retire(ss) {
			return
		}
		select {
		case <-answered:
			since = time.Now()
			go func() {
				_, _ = ss.conn.Sync(ss.s.o.Base) // wire observes the answer
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

// hosts tells the library which server is next. It connects to them in turn.
type hosts struct {
	session *session
	servers []string
	next    int
}

// Init implements zk.HostProvider.
func (h *hosts) Init(servers []string) error { h.servers = servers; return nil }

// Len implements zk.HostProvider.
func (h *hosts) Len() int { return len(h.servers) }

// Connected implements zk.HostProvider.
func (h *hosts) Connected() {}

// Next implements zk.HostProvider. The library looks whether it was closed only if retry
// is set, and fails requests that it has not sent.
func (h *hosts) Next() (server string, retry bool) {
	ss := h.session
	ss.mu.Lock()
	dials := ss.dials
	ss.dials++ // until a handshake is answered
	ss.mu.Unlock()
	if rounds := dials / len(h.servers); rounds > 0 && dials%len(h.servers) == 0 {
		pause := min(20*time.Millisecond<<min(rounds, 5), 500*time.Millisecond)
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ss.over:
		}
	}
	server = h.servers[h.next%len(h.servers)]
	h.next++
	return server, ss.ended()
}
