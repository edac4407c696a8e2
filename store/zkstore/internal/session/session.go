package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Session is one session with the servers, for leases of one class of TTLs. Its places
// are gone when it ends. It ends when the servers say so, or when nobody has used it for
// a while.
type Session struct {
	pool *Pool
	// class is the longest TTL of the session's leases. The session's own timeout is
	// longer by contact.slack.
	class time.Duration
	conn  *zk.Conn
	link  *link
	// ready is closed when the session can be used.
	ready chan struct{}
	// Over is closed when the session has ended.
	Over <-chan struct{}

	mu    sync.Mutex
	users int
	used  time.Time // when the last user left
}

// ErrOver means that a session is over, and all nodes that it had are gone.
var ErrOver = errors.New("the ZooKeeper session is over")

// start begins a session. It does not wait for it.
func (s *Pool) start(class time.Duration) *Session {
	over := make(chan struct{})
	ss := &Session{pool: s, class: class, ready: make(chan struct{}), Over: over, used: time.Now()}
	ss.link = &link{
		clock: s.o.Clock, tick: s.o.Limits.Tick, timeout: class + s.o.Limits.Slack(), servers: len(s.o.Servers), auths: len(s.o.Auth),
		over: over, contact: contact{tick: s.o.Limits.Tick, slack: s.o.Limits.Slack()},
	}
	conn, events, err := zk.Connect(s.o.Servers, ss.link.timeout, zk.WithDialer(ss.link.dial), zk.WithHostProvider(&hosts{link: ss.link, servers: s.o.Servers}),
		zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil { // the list of servers is empty, which Open refuses
		ss.link.finish(err)
		return ss
	}
	ss.conn = conn
	s.workers.Go(func() {
		ss.prepare()
		ss.touch()
		conn.Close()
		ss.link.hangUp()
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
	for changes := ss.Changes(); !ss.link.up(); changes = ss.Changes() {
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
			ss.link.finish(fmt.Errorf("authenticate with scheme %s: %w", a.Scheme, err))
			return
		}
	}
	close(ss.ready)
}

// Changes returns a channel that is closed at the next answer or connection.
func (ss *Session) Changes() <-chan struct{} { return ss.link.changes() }

// Reason returns why the session is over, or why there is no connection.
func (ss *Session) Reason() error { return ss.link.reason() }

// Class returns the longest TTL of the session's leases.
func (ss *Session) Class() time.Duration { return ss.class }

// Ended reports whether the session is over.
func (ss *Session) Ended() bool { return ss.link.ended() }

// close gives the session up. The servers end it at once if there is nothing in it, and
// otherwise when its timeout has passed.
func (ss *Session) close() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.link.ending.Store(ss.users == 0)
	ss.link.finish(errClosed)
}

// touch keeps the session alive on the servers until it is over. If a server does not
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
			if silent := time.Since(since); silent > ss.link.patience() {
				ss.link.giveUp(silent)
				since = time.Now()
			}
		}
	}
}
