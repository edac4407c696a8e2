package leasehold

import "time"

// Each news wakes all waiters that read it, and a lock that changes hands has news all the
// time. Up to fewWaiters are told at once; more of them are told together what is new, as seldom
// as keeps them from using the processor for nothing else.
const (
	fewWaiters = 64
	perWaiter  = 100 * time.Microsecond
)

// news wakes waiters of a queue that have to read anew why they wait. The queues' mutex guards
// it.
type news struct {
	next chan struct{} // closed when there is some; nil while nobody waits for it
	due  bool          // it will be closed soon
}

// waitLocked returns a channel that is closed when there is news.
func (n *news) waitLocked() <-chan struct{} {
	if n.next == nil {
		n.next = make(chan struct{})
	}
	return n.next
}

// tellLocked has n wake those that wait for it.
func (q *queue) tellLocked(n *news) {
	switch many := q.m.Len(); {
	case n.next == nil || n.due:
	case many <= fewWaiters:
		close(n.next)
		n.next = nil
	default:
		n.due = true
		time.AfterFunc(time.Duration(many)*perWaiter, func() { q.c.guard.Run(func() { q.tellDue(n) }, nil) })
	}
}

// tellDue wakes many. It does so without the mutex, since that takes long.
func (q *queue) tellDue(n *news) {
	q.c.mutex.Lock()
	next := n.next
	n.next, n.due = nil, false
	q.c.mutex.Unlock()
	if next != nil {
		close(next)
	}
}

// told is a channel with news.
var told = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
