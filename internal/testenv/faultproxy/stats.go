package faultproxy

import (
	"sync/atomic"
	"time"
)

// Stats counts what has gone through the proxy so far. Bytes count as passed once
// the kernel has them, so the other side may see them slightly before or after
// Stats does.
type Stats struct {
	Accepted int64 // connections
	Refused  int64 // connections, by RefuseNew
	Open     int64 // connections now
	Cut      int64 // replies, by CutReplyAfter and CutReplyTo
	Requests Flow  // from clients to the server
	Replies  Flow  // from the server to clients
}

// Flow counts the bytes of one direction.
type Flow struct {
	Received int64 // by the proxy
	Passed   int64 // on to the other side
	Lost     int64 // swallowed, cut off, or left when the connection ended
}

// Held returns the number of bytes received and not yet passed on or lost.
func (f Flow) Held() int64 { return f.Received - f.Passed - f.Lost }

type counters struct {
	accepted, refused, cut atomic.Int64
	received, passed, lost [2]atomic.Int64 // by direction
}

// Stats returns the counters.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	open := len(p.links)
	p.mu.Unlock()
	c := &p.count
	flow := func(d direction) Flow {
		// Received is read last, so that no bytes seem to be passed on before they were received.
		f := Flow{Passed: c.passed[d].Load(), Lost: c.lost[d].Load()}
		f.Received = c.received[d].Load()
		return f
	}
	return Stats{
		Accepted: c.accepted.Load(),
		Refused:  c.refused.Load(),
		Open:     int64(open),
		Cut:      c.cut.Load(),
		Requests: flow(toServer),
		Replies:  flow(toClient),
	}
}

// Await waits until ok accepts the counters. It fails the test, naming what was
// awaited, after half a minute.
func (p *Proxy) Await(t TB, what string, ok func(Stats) bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		s := p.Stats()
		if ok(s) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("faultproxy: waited in vain for %s: %+v", what, s)
		}
	}
}
