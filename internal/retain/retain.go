// Package retain decides what one server still has to be told, and for how long.
//
// A lease is ended on every server that may have it. A server that is away when that
// happens, or that answers with an error, keeps the lease for its TTL, and with it
// everybody from the lock. So the release is retained: it is sent again, before all
// else, until the server has executed it or it can have no effect any more.
package retain

import (
	"container/list"
	"time"
)

// List is what one server has yet to be told, oldest first. K names a lease, T is what
// there is to say of it. The zero List is empty. It is a plain value without a clock;
// whoever uses it sees to mutual exclusion.
type List[K comparable, T any] struct {
	// Most bounds the entries. One more drops the oldest.
	Most int

	entries   list.List // of *Entry[K, T]
	byKey     map[K]*list.Element
	connected bool
	run       string // of the server, while connected; empty: not known
	lost      string // the same, of the last connection that was lost
	dropped   uint64

	// Leases that this server was never told of. Each set becomes the old one when it
	// is full, so that they are bounded without being looked through.
	unknown, older map[K]struct{}
}

// Entry is one thing to tell.
type Entry[K comparable, T any] struct {
	What T

	key      K
	ttl      time.Duration // of the lease
	kept     time.Time     // nothing of the lease was sent later
	run      string        // of the server that may have the lease; empty: not known
	until    time.Time     // it has no effect from then on; zero: not known yet
	again    time.Time     // not to be sent before
	tries    int           // that the server refused
	underway bool          // it was sent over the present connection
}

const (
	// A server that refuses is asked again after firstPause, which doubles up to
	// longestPause.
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
	// A lease has certainly ended after its TTL and one part in slack of it.
	slack = 16
)

// Keep retains what ends the lease named k, which was made or renewed for ttl before
// now. It replaces what was retained for that lease before. It says whether there is
// a need to: none if the server was never told of the lease.
func (l *List[K, T]) Keep(k K, what T, ttl time.Duration, now time.Time) bool {
	if l.isUnknown(k) {
		l.Told(k)
		return false
	}
	l.Forget(k)
	if l.entries.Len() >= max(l.Most, 1) {
		l.remove(l.entries.Front())
		l.dropped++
	}
	e := &Entry[K, T]{What: what, key: k, ttl: ttl, kept: now, run: l.lost}
	if l.connected {
		e.run, e.until, e.again = l.run, e.end(now), now.Add(firstPause)
	}
	if l.byKey == nil {
		l.byKey = map[K]*list.Element{}
	}
	l.byKey[k] = l.entries.PushBack(e)
	return true
}

// end is when a lease has ended that began or was renewed at t at the latest.
func (e *Entry[K, T]) end(t time.Time) time.Time { return t.Add(e.ttl + e.ttl/slack) }

// Connected takes in that there is a connection to the server, which runs as run; empty
// means that it does not say. All entries are due.
//
// A server that still runs may have been stopped, with requests of ours unread: those
// it has executed by now, so what they made ends a TTL from now. What a server had
// not executed when it died is lost with it, so what it has ends a TTL after the last
// request was sent.
func (l *List[K, T]) Connected(run string, now time.Time) {
	l.connected, l.run = true, run
	l.unknown, l.older = nil, nil // the two are about the outage
	for at := l.entries.Front(); at != nil; at = at.Next() {
		e := at.Value.(*Entry[K, T])
		e.again, e.tries = time.Time{}, 0
		switch {
		case !e.until.IsZero():
		case newRunEnds && e.run != "" && run != "" && e.run != run:
			e.until = e.end(e.kept)
		default:
			e.run, e.until = run, e.end(now)
		}
	}
}

// Disconnected takes in that the connection is gone. What was sent over it and not
// answered is to be sent again.
func (l *List[K, T]) Disconnected() {
	if !l.connected {
		return
	}
	l.connected, l.lost = false, l.run
	for at := l.entries.Front(); at != nil; at = at.Next() {
		e := at.Value.(*Entry[K, T])
		if e.tries == 0 { // or the server has executed all that was sent before
			e.until = time.Time{}
		}
		e.underway = e.underway && !resendUnanswered
	}
}

// Due returns what is to be sent now, oldest first, and counts it as sent. It
// forgets what has no effect any more.
func (l *List[K, T]) Due(now time.Time) (due []*Entry[K, T]) {
	for at := l.entries.Front(); at != nil; {
		e, next := at.Value.(*Entry[K, T]), at.Next()
		switch {
		case !e.until.IsZero() && !now.Before(e.until):
			l.remove(at)
		case !e.underway && !now.Before(e.again):
			e.underway = true
			due = append(due, e)
		}
		at = next
	}
	return due
}

// Answered takes in that the server has answered e: it has executed it, or refuses to.
func (l *List[K, T]) Answered(e *Entry[K, T], executed bool, now time.Time) {
	at := l.byKey[e.key]
	if at == nil || at.Value != e {
		return // it was replaced
	}
	if executed || !retainRefused {
		l.remove(at)
		return
	}
	e.underway, e.again = false, now.Add(min(firstPause<<min(e.tries, 8), longestPause))
	e.tries++
}

// Next is when there is something to send again, while there is a connection.
func (l *List[K, T]) Next() (next time.Time, ok bool) {
	for at := l.entries.Front(); at != nil; at = at.Next() {
		if e := at.Value.(*Entry[K, T]); !e.underway && (!ok || e.again.Before(next)) {
			next, ok = e.again, true
		}
	}
	return next, ok
}

// Forget drops what is retained for the lease, which the server has been told
// otherwise.
func (l *List[K, T]) Forget(k K) {
	if at := l.byKey[k]; at != nil {
		l.remove(at)
	}
}

func (l *List[K, T]) remove(at *list.Element) {
	delete(l.byKey, at.Value.(*Entry[K, T]).key)
	l.entries.Remove(at)
}

// All returns what is retained, oldest first.
func (l *List[K, T]) All() (all []T) {
	for at := l.entries.Front(); at != nil; at = at.Next() {
		all = append(all, at.Value.(*Entry[K, T]).What)
	}
	return all
}

// Len is how many entries there are.
func (l *List[K, T]) Len() int { return l.entries.Len() }

// Dropped is how many entries were dropped for want of room.
func (l *List[K, T]) Dropped() uint64 { return l.dropped }

// Untold takes in that the request that would have made the lease was never sent. A
// release of it is not worth keeping, nor is one that was kept while the request waited
// to be sent.
func (l *List[K, T]) Untold(k K) {
	if skipUntold {
		l.Forget(k)
	}
	if len(l.unknown) >= max(l.Most, 1) {
		l.unknown, l.older = nil, l.unknown
	}
	if l.unknown == nil {
		l.unknown = map[K]struct{}{}
	}
	l.unknown[k] = struct{}{}
}

// Told takes in that a request that may make the lease is about to be sent.
func (l *List[K, T]) Told(k K) {
	delete(l.unknown, k)
	delete(l.older, k)
}

func (l *List[K, T]) isUnknown(k K) bool {
	if !skipUntold {
		return false
	}
	_, unknown := l.unknown[k]
	_, older := l.older[k]
	return unknown || older
}
