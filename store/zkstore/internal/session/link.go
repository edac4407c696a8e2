package session

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// link is the connection of a session, to one server after the other, and what the answers
// on it prove about the session.
type link struct {
	clock clock.Clock
	tick  time.Duration // of the servers
	// timeout is that of the session.
	timeout time.Duration
	servers int           // how many there are
	auths   int           // how many identities each of them has
	over    chan struct{} // closed when the session has ended
	ending  atomic.Bool   // the servers are to end the session
	zxid    atomic.Int64  // the last one of an answer

	mu      sync.Mutex
	wire    *wire // the present connection, or nil
	live    bool  // it was established, and has not failed since
	known   bool  // the server was told all identities on it
	id      uint64
	contact contact
	changed chan struct{} // closed when there is an answer or a connection; nil if nobody waits
	why     error         // why the session has ended, or why there was no connection lately; never nil after the end
	dials   int           // without success, one after the other
}

// hangUp closes the connection, if there is one.
func (l *link) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wire != nil {
		l.wire.Conn.Close()
	}
}

// failed is called when a connection has failed, before or after the handshake.
func (l *link) failed(w *wire, err error, shaken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w == l.wire {
		l.live = false
	}
	if !shaken && l.why == nil {
		l.why = fmt.Errorf("%s does not serve: %w", w.RemoteAddr(), err)
	}
}

// patience returns how long a server may take to answer.
func (l *link) patience() time.Duration { return l.timeout / 3 }

// courtesy is how long a server may take to answer a handshake: less than patience if
// there are others that may be quicker, and more in each round through all of them.
func (l *link) courtesy() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return courtesy(l.tick, l.patience(), l.servers, l.dials)
}

// courtesy is link.courtesy at the given number of attempts without success.
func courtesy(tick, patience time.Duration, servers, dials int) time.Duration {
	if servers == 1 {
		return patience
	}
	rounds := min(max(0, dials-1)/servers, 10)
	return min(tick<<rounds, patience)
}

// dial connects to a server.
func (l *link) dial(network, address string, _ time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), min(l.patience(), 2*time.Second))
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-l.over:
			cancel()
		case <-stop:
		}
	}()
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if !l.ended() {
			l.why = err
		}
		return nil, err
	}
	l.wire, l.live, l.known = newWire(c, l), false, false
	return l.wire, nil
}

// connected is called when a server has answered the handshake.
func (l *link) connected(w *wire, id uint64, granted time.Duration, e exchange, created bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	class := l.timeout - l.contact.slack
	switch {
	case l.ended():
		return
	case id == 0:
		l.finishLocked(fmt.Errorf("%w: the servers have received nothing from this process for %v, and ended it", ErrOver, l.timeout))
		return
	case granted < l.timeout:
		l.finishLocked(fmt.Errorf("the server grants sessions of at most %v, and leases of %v need %v: raise maxSessionTimeout on every server", granted, class, l.timeout))
		return
	}
	l.id, l.dials, l.wire, l.live, l.why = id, 0, w, true, nil
	l.known = l.known || l.auths == 0
	l.contact.connected(e, created)
	l.notifyLocked()
}

// introduced is called when that many identities were sent to the server. The server takes
// them before it executes later requests.
func (l *link) introduced(w *wire, identities int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w == l.wire && identities >= l.auths {
		l.known = true
		l.notifyLocked()
	}
}

// answered is called when the leader has answered a request.
func (l *link) answered(w *wire, e exchange, wrote bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w == l.wire {
		l.contact.answered(e, wrote)
		l.notifyLocked()
	}
}

func (l *link) notifyLocked() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func (l *link) changedLocked() <-chan struct{} {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// changes returns a channel that is closed at the next answer or connection.
func (l *link) changes() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changedLocked()
}

// up reports whether the session was ever established.
func (l *link) up() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id != 0
}

// contacts returns what the session's contact has concluded. If proven is before at, it also
// returns a channel that is closed when that may have changed.
func (l *link) contacts(at clock.Instant) (proven, written clock.Instant, changes <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.contact.proven < at {
		changes = l.changedLocked()
	}
	return l.contact.proven, l.contact.written, changes
}

// reason returns why the session is over, or why there is no connection.
func (l *link) reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// finish ends the session. The first reason stays.
func (l *link) finish(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finishLocked(why)
}

func (l *link) finishLocked(why error) {
	if l.ended() {
		return
	}
	l.why = why
	close(l.over)
}

// dialing counts an attempt to connect. It returns how many attempts before it failed, one
// after the other.
func (l *link) dialing() (before int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials++
	return l.dials - 1
}

// giveUp closes the connection, if there is one, because its server has been silent for that
// time.
func (l *link) giveUp(silent time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wire != nil && !l.ended() {
		l.why = fmt.Errorf("%s has not answered for %v", l.wire.RemoteAddr(), silent.Round(time.Millisecond))
		l.wire.Conn.Close()
	}
}

// reach waits until there is a connection, and returns it. Without one, the library would keep
// a request and send it later, when nobody waits for the answer any more. If introduced is
// set, reach waits until the server knows our identities.
func (l *link) reach(ctx context.Context, introduced bool) (*wire, error) {
	for {
		l.mu.Lock()
		if l.live && (l.known || !introduced) {
			w := l.wire
			l.mu.Unlock()
			return w, ctx.Err()
		}
		changed := l.changedLocked()
		l.mu.Unlock()
		select {
		case <-changed:
		case <-l.over:
			return nil, l.reason()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ended reports whether the session is over.
func (l *link) ended() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}
