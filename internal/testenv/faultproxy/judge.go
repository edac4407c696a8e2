package faultproxy

import (
	"bytes"
	"time"
)

type verdict uint8

const (
	deliver verdict = iota
	deliverAndCut
	drop
	hold
)

// ruling is what to do with one item now.
type ruling struct {
	verdict verdict
	limit   int             // deliverAndCut: how many bytes to deliver
	wait    time.Duration   // hold: for how long at most; 0: until changed
	changed <-chan struct{} // hold: closed when the ruling may have changed
}

// judge decides about one item and counts it, atomically with respect to changes
// of the mode.
func (p *Proxy) judge(l *link, dir direction, it item) ruling {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.state.judge(dir, it, time.Now())
	switch r.verdict {
	case drop:
		l.holed = true
	case hold:
		r.changed = p.changed
	case deliver:
		if limit, cut := p.state.cutting(l, dir, it); cut {
			r.verdict, r.limit = deliverAndCut, limit
		}
	}
	return r
}

// cutting reports whether the connection is to be cut at this item, and after how
// many of its bytes.
func (s *state) cutting(l *link, dir direction, it item) (limit int, cut bool) {
	if it.end {
		return 0, false
	}
	c := s.cut
	// A cut with a match waits for such a request. A cut without one applies to any reply.
	if c != nil && l.cutAfter < 0 && (dir == toServer) == (len(c.match) > 0) && bytes.Contains(it.data, c.match) {
		if s.cut = nil; c.after < 0 {
			return 0, true
		}
		l.cutAfter = c.after
	}
	if dir == toServer || l.cutAfter < 0 {
		return 0, false
	}
	if len(it.data) < l.cutAfter {
		l.cutAfter -= len(it.data)
		return 0, false
	}
	return l.cutAfter, true
}

// judge defines what each mode does with an item.
func (s state) judge(dir direction, it item, now time.Time) ruling {
	if it.seq <= s.released {
		return ruling{verdict: deliver}
	}
	held := false
	switch s.mode {
	case blackhole:
		return ruling{verdict: drop}
	case dropReplies:
		if dir == toClient {
			return ruling{verdict: drop}
		}
	case holdAll:
		held = true
	case holdRequests:
		held = dir == toServer
	case holdReplies:
		held = dir == toClient
	case delay:
		if wait := it.received.Add(s.delay).Sub(now); wait > 0 {
			return ruling{verdict: hold, wait: wait}
		}
	}
	if held {
		return ruling{verdict: hold}
	}
	return ruling{verdict: deliver}
}
