package simnet

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/simredis"
)

// link is the server's end of a connection. The network's mutex guards it, except in wrote.
type link struct {
	h       *Host
	conn    *Conn
	session *simredis.Conn
	over    bool // no more bytes pass

	slow  []byte   // bytes that wait until there is room for them on the way; see Network.Rate
	busy  bool     // some of slow are on their way
	sent  []byte   // bytes that have arrived and are not executed: the server is silent, or a command is incomplete
	ends  bool     // the client has closed its end
	there [][]byte // replies on their way to the client, in order
}

// wrote makes what the client has written arrive after the delay.
func (l *link) wrote() {
	n := l.h.n
	if n.Delay == 0 {
		n.mu.Lock()
		defer n.mu.Unlock()
		l.arriveLocked()
		return
	}
	delay := n.Delay
	if n.Late != nil {
		delay += n.Late()
	}
	time.AfterFunc(delay, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		l.arriveLocked()
	})
}

// arriveLocked takes all that was written so far. If there were several writes, the first to
// arrive takes the others with it.
func (l *link) arriveLocked() {
	out, closed := l.conn.Take()
	l.ends = l.ends || closed
	if l.h.n.Rate == 0 {
		l.sent = append(l.sent, out...)
		l.serveLocked()
		return
	}
	l.slow = append(l.slow, out...)
	if !l.busy {
		l.carryLocked()
	}
}

// carryLocked carries the bytes in slow at the network's rate, for a hundredth of a second at a
// time.
func (l *link) carryLocked() {
	n := l.h.n
	part := min(len(l.slow), max(1, n.Rate/100))
	if l.busy = part > 0; !l.busy {
		l.serveLocked()
		return
	}
	time.AfterFunc(time.Duration(part)*time.Second/time.Duration(n.Rate), func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		l.sent = append(l.sent, l.slow[:part]...)
		l.slow = l.slow[part:]
		l.serveLocked()
		l.carryLocked()
	})
}

// serveLocked executes the commands that have arrived.
func (l *link) serveLocked() {
	for !l.over && l.h.silent == nil {
		words, rest, err := simredis.Parse(l.sent)
		if err != nil {
			l.says([]byte("-ERR Protocol error\r\n"))
			l.ends, words = true, nil
		}
		if words == nil {
			break
		}
		l.sent = rest
		l.says(l.session.Do(words))
	}
	if l.ends && len(l.slow) == 0 && !l.over && l.h.silent == nil {
		l.over = true
		l.session.Close()
		l.conn.End(ErrReset)
		l.h.links = slices.DeleteFunc(l.h.links, func(o *link) bool { return o == l })
	}
}

// says sends a reply or a push message of the server to the client.
func (l *link) says(b []byte) {
	n := l.h.n
	if n.Delay == 0 {
		l.conn.Deliver(b)
		return
	}
	l.there = append(l.there, b)
	time.AfterFunc(n.Delay, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if !l.over {
			b := l.there[0]
			l.there = l.there[1:]
			l.conn.Deliver(b)
		}
	})
}
