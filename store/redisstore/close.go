package redisstore

import "time"

// Closing must leave no leases behind, but must not wait long for servers that do not
// answer. A request written to a live connection will be executed: even a stopped server
// reads its socket when it continues. Close therefore waits briefly for answers, then
// treats every unanswered request as granted and sends releases after them. It waits
// longer only for a node whose connection broke after something was sent.

const (
	// answerGrace is how long after it was sent a request may still be answered while the
	// store closes.
	answerGrace = 20 * time.Millisecond
	// closingTime bounds Close.
	closingTime = 300 * time.Millisecond
)

// Close implements driver.Engine. It ends all waits, gives up their places, and closes all
// connections. It blocks for at most a third of a second, to let releases be sent. It is
// safe for concurrent use; a second call returns nil at once. Leases that are still held
// last until their TTL expires.
func (s *engine) Close() error {
	if s.Closed.Swap(true) {
		return nil
	}
	progress := s.Progress.Await()
	close(s.Closing)
	s.Driver.AbandonAll()
	for _, n := range s.all() {
		n.InterruptInline()
	}
	patience, late := time.NewTimer(closingTime), time.NewTimer(closingTime)
	defer patience.Stop()
	defer late.Stop()
	for waiting := true; waiting; {
		busy, grace := s.busy()
		if !busy {
			break
		}
		late.Reset(grace)
		select {
		case <-progress:
		case <-late.C:
		case <-patience.C:
			waiting = false
		}
	}
	for _, n := range s.Nodes {
		n.Shut()
	}
	return nil
}

// busy reports whether a store that is being closed still has something to send or to
// wait for, and how long its servers may take at most until they are doubted.
func (s *engine) busy() (busy bool, grace time.Duration) {
	now := time.Now()
	owed, unheard, grace := false, int64(0), closingTime
	for _, n := range s.all() {
		grace = min(grace, n.Pipe().Doubt(now, answerGrace, closingTime))
		calls, owes := n.Unfinished()
		owed, unheard = owed || owes, unheard+calls
	}
	return owed || s.Waiting.Load() > 0 || s.InFlight.Load() > unheard, grace
}
