package redisstore

import (
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// A store that is closed has to leave nothing behind, and nobody wants to wait for
// servers that say nothing. What is written to a live connection is as good as told,
// even to a server that is stopped: it reads its socket when it goes on. So closing
// waits for answers for a moment only, and then treats all requests that are not
// answered as if they had been granted, and sends the releases after them. It waits
// longer only for a node whose connection broke after something was sent.

const (
	// answerGrace is how long after it was sent a request may be answered while its
	// store is closed.
	answerGrace = 20 * time.Millisecond
	// closingTime bounds Close.
	closingTime = 300 * time.Millisecond
)

// Close implements store.Store. Those who wait in line give up their places. It waits
// for clean-up that is still under way, for a third of a second at most.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	close(s.closing)
	s.keeper.AbandonAll()
	for _, n := range s.members() {
		n.call()
	}
	patience := time.NewTimer(closingTime)
	defer patience.Stop()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for waiting := s.busy(); waiting; waiting = waiting && s.busy() {
		select {
		case <-look.C:
		case <-patience.C:
			waiting = false
		}
	}
	for _, n := range s.nodes {
		n.close()
	}
	return nil
}

// members are the nodes that there are, in a cluster too.
func (s *Store) members() []*node {
	if s.route != nil {
		return s.route.everybody()
	}
	return s.nodes
}

// busy says whether a store that is being closed has anything left to do.
func (s *Store) busy() bool {
	now := time.Now()
	owed, unheard := false, int64(0)
	for _, n := range s.members() {
		n.doubt(now)
		calls, owes := n.unfinished()
		owed, unheard = owed || owes, unheard+calls
	}
	return owed || s.waiting.Load() > 0 || s.inFlight.Load() > unheard
}

// unfinished says how many of the node's calls need not be waited for, and whether it still
// has to be told something that it can be told.
func (n *node) unfinished() (unheard int64, owes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.wire
	switch {
	case w == nil && !n.reached: // nothing was ever sent
		return int64(n.waiting.n), false
	case w == nil:
		for c := range n.waiting.all {
			owes = owes || c.command.script.frees()
		}
		return int64(n.waiting.n), owes || n.retained.Len() > 0
	case w.doubted:
		return int64(w.flight.n), n.sending || n.waiting.n > 0 || w.again.n > 0 || len(w.rest) > 0
	}
	return 0, false
}

// doubt has a node whose answers are late treat all that is in flight as perhaps done,
// so that whoever asked releases it. What comes in is not listened to any more.
func (n *node) doubt(now time.Time) {
	n.mu.Lock()
	w := n.wire
	if w == nil || w.doubted || w.broken != nil {
		n.mu.Unlock()
		return
	}
	oldest := w.flight.front()
	if oldest == nil || now.Sub(oldest.sent) < answerGrace {
		n.mu.Unlock()
		return
	}
	w.doubted = true
	w.watch.Stop()
	var late queue[call]
	late, w.flight = w.flight, late
	w.resume()
	n.wake()
	n.mu.Unlock()
	for c, ok := late.pop(); ok; c, ok = late.pop() {
		n.settle(c, reply{outcome: store.TimedOut, err: errSilent, sent: true})
	}
}
