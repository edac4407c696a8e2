package sim

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/simnet"
)

// link is the path of a client to one node. It has connections one after the other, and
// sometimes several at once.
type link struct {
	w       *world
	c       *client
	n       *node
	streams []*stream
	open    int        // connections that the present run of the server takes for open
	dialed  []*dialing // under way; with the world's mutex until the driver takes them

	// The effects of faults; counts of faults that are on.
	extra               time.Duration
	held, deaf, noSpace int
	cut                 int // connections are refused, and none is left
	space               atomic.Pointer[chan struct{}]
	clearSince          time.Duration // no fault is on it since
}

// dialing is a connection that the client waits for.
type dialing struct {
	gone   atomic.Bool // the client has given up
	result chan dialed
}

type dialed struct {
	conn net.Conn
	err  error
}

// nodeAddress is the address of a node for clients.
func nodeAddress(i int) string { return "n" + strconv.Itoa(i+1) + ":6379" }

// dial is the Options.Dial of the store.
func (c *client) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	number, _, _ := strings.Cut(strings.TrimPrefix(addr, "n"), ":")
	i, err := strconv.Atoi(number)
	if err != nil || i < 1 || i > len(c.links) {
		return nil, &net.AddrError{Err: "no such node", Addr: addr}
	}
	if c.gone.Load() {
		return nil, errKilled
	}
	l, d := c.links[i-1], &dialing{result: make(chan dialed, 1)}
	c.w.mu.Lock()
	l.dialed = append(l.dialed, d)
	c.w.mu.Unlock()
	c.w.wake()
	select {
	case r := <-d.result:
		return r.conn, r.err
	case <-ctx.Done():
		d.gone.Store(true)
		return nil, ctx.Err()
	case <-c.killed:
		return nil, errKilled
	}
}

// connect is the driver's part of a dial.
func (l *link) connect(d *dialing) {
	if l.held > 0 || l.deaf > 0 {
		return // until the client gives it up
	}
	l.w.after(l.delay()+l.delay(), arrival, func() {
		if d.gone.Load() || l.held > 0 || l.deaf > 0 {
			return
		}
		l.c.sees(func() {
			l.w.stirred = true
			if d.gone.Load() {
				return
			}
			if !l.n.up || l.cut > 0 {
				d.result <- dialed{err: simnet.ErrRefused}
				return
			}
			s := &stream{l: l, c: simnet.NewConn(simnet.Hooks{Wrote: l.w.wake, Stirred: func() { l.w.stirred = true }, Space: &l.space}), life: l.n.life}
			s.session = l.n.server.Connect(func(b []byte) { l.n.pushes(b); s.says(b) })
			l.open++
			l.streams = append(slices.DeleteFunc(l.streams, (*stream).idle), s)
			l.w.hist.say("c%d has a connection to n%d", l.c.index+1, l.n.index+1)
			d.result <- dialed{conn: s.c}
		})
	})
}

// transmit sends what the client has to say to the node.
func (l *link) transmit() {
	l.w.mu.Lock()
	dialed := l.dialed
	l.dialed = nil
	l.w.mu.Unlock()
	for _, d := range dialed {
		l.connect(d)
	}
	for _, s := range l.streams {
		s.transmit()
	}
}

// delay is how long a message takes one way.
func (l *link) delay() time.Duration {
	d := 100*time.Microsecond + time.Duration(l.w.rng.ExpFloat64()*float64(400*time.Microsecond))
	if l.extra > 0 {
		d += l.extra/2 + time.Duration(l.w.rng.Int64N(int64(l.extra)))
	}
	return d
}

// heal lets go what a fault held.
func (l *link) heal() {
	for _, s := range l.streams {
		s.heal()
	}
}

// breaks cuts all connections.
func (l *link) breaks(late time.Duration) {
	for _, s := range l.streams {
		if s.life == l.n.life {
			s.cut(late)
		}
	}
}

// fill makes writes block, or go on.
func (l *link) fill() {
	if room := l.space.Load(); l.noSpace > 0 && room == nil {
		room := make(chan struct{})
		l.space.Store(&room)
	} else if l.noSpace == 0 && room != nil {
		l.space.Store(nil)
		close(*room)
		l.w.stirred = true
	}
}

// replay sends the last commands of the newest connection once more.
func (l *link) replay(most int) {
	if len(l.streams) == 0 || !l.n.up {
		return
	}
	served := l.streams[len(l.streams)-1].served
	for _, words := range served[max(0, len(served)-most):] {
		l.w.after(l.delay(), outside, func() {
			if l.n.up {
				l.n.replays(words)
			}
		})
	}
}

// usable reports whether nothing is wrong with the link and its node, and nothing that was
// wrong keeps anything under way.
func (l *link) usable() bool {
	if l.held+l.deaf+l.noSpace+l.cut > 0 || l.extra > 0 || !l.n.up || l.n.slow > 0 || l.n.server.Trouble != "" {
		return false
	}
	soon := l.w.now() + 5*time.Millisecond
	return !slices.ContainsFunc(l.streams, func(s *stream) bool { return !s.closed && (s.lastOut > soon || s.lastIn > soon) })
}

// hungUp reports whether the client is dead and the node knows it: it has seen the end of all
// connections.
func (l *link) hungUp() bool { return l.c.dead && l.open == 0 }

// connected reports whether the client has a connection that works.
func (l *link) connected() bool {
	return slices.ContainsFunc(l.streams, func(s *stream) bool { return !s.closed && s.life == l.n.life })
}

// errKilled is what a process that was killed would find, if it could.
var errKilled = errors.New("process is dead")
