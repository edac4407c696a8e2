// Package retain decides which releases must be sent to a server again, and for how long.
//
// A lease is released on every server that may have it. If a server is unreachable at that
// time, or answers with an error, the lease would block the lock until its TTL expires. So
// the release is retained: it is sent again, before all other requests, until the server
// has executed it or it cannot have an effect any more.
package retain

import (
	"container/list"
	"time"
)

// List holds the retained releases of one server, oldest first. K identifies a lease, and T
// is its release. The zero List is empty. A List has no clock and is not safe for
// concurrent use.
type List[K comparable, T any] struct {
	// Most bounds the entries. A further entry drops the oldest.
	Most int

	entries   list.List // of *Entry[K, T]
	byKey     map[K]*list.Element
	connected bool
	run       string // run ID of the server, while connected; empty: not known
	lost      string // the same, of the last connection that was lost
	dropped   uint64
	// No entry becomes due before next. It counts only if soon is set. A
	// search for it would make thousands of calls that end at the same time, as those to a
	// server that has stopped do, cost thousands of steps each.
	next time.Time
	soon bool

	// Leases whose requests were never sent to this server. When unknown is full, it
	// replaces older, so that both stay bounded without a search.
	unknown, older map[K]struct{}
}

// Entry is one retained release.
type Entry[K comparable, T any] struct {
	What T

	key      K
	ttl      time.Duration // of the lease
	kept     time.Time     // nothing of the lease was sent later
	run      string        // of the server that may have the lease; empty: not known
	until    time.Time     // when the release becomes useless; zero: not known yet
	again    time.Time     // not to be sent before
	tries    int           // how often the server refused it
	underway bool          // it was sent over the present connection
}

const (
	// A server that refuses is asked again after firstPause, which doubles up to
	// longestPause.
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
	// A lease has certainly ended after its TTL and a further 1/slack of it.
	slack = 16
)

// Keep retains the release of lease k, which was granted or renewed for ttl before now. It
// replaces an earlier release of that lease. It returns false and retains nothing if no
// request for the lease was ever sent to the server.
func (l *List[K, T]) Keep(k K, what T, ttl time.Duration, now time.Time) bool {
	if l.isUnknown(k) {
		l.Sending(k)
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
	l.dueAt(e.again)
	if l.byKey == nil {
		l.byKey = map[K]*list.Element{}
	}
	l.byKey[k] = l.entries.PushBack(e)
	return true
}

// dueAt notes that an entry becomes due at t.
func (l *List[K, T]) dueAt(t time.Time) {
	if !l.soon || t.Before(l.next) {
		l.next, l.soon = t, true
	}
}

// end returns when a lease has certainly ended that was last renewed at t or before.
func (e *Entry[K, T]) end(t time.Time) time.Time { return t.Add(e.ttl + e.ttl/slack) }

// Connected records a new connection to the server. The argument run is its run ID, empty
// if it is not known. All entries become due.
//
// A server that is still in the same run may have been stopped with our requests unread.
// It has executed them by now, so their leases end one TTL from now. Requests that a
// server had not executed when it died are lost, so the leases of the run before end one
// TTL after the last request was sent.
func (l *List[K, T]) Connected(run string, now time.Time) {
	l.connected, l.run = true, run
	l.unknown, l.older = nil, nil // both are about the outage
	for at := l.entries.Front(); at != nil; at = at.Next() {
		e := at.Value.(*Entry[K, T])
		e.again, e.tries = time.Time{}, 0
		l.dueAt(e.again)
		switch {
		case newRunEnds && e.run != "" && run != "" && e.run != run:
			e.until = e.end(e.kept)
		case !e.until.IsZero():
		default:
			e.run, e.until = run, e.end(now)
		}
	}
}

// Disconnected records the loss of the connection. Releases that were sent over it and not
// answered must be sent again.
func (l *List[K, T]) Disconnected() {
	if !l.connected {
		return
	}
	l.connected, l.lost = false, l.run
	for at := l.entries.Front(); at != nil; at = at.Next() {
		e := at.Value.(*Entry[K, T])
		if e.tries == 0 { // otherwise the server has executed all earlier requests
			e.until = time.Time{}
		}
		e.underway = e.underway && !resendUnanswered
		l.dueAt(e.again)
	}
}

// Due returns the entries to send now, oldest first, and counts them as sent. It drops
// entries that cannot have an effect any more.
func (l *List[K, T]) Due(now time.Time) (due []*Entry[K, T]) {
	l.soon = false
	for at := l.entries.Front(); at != nil; {
		e, next := at.Value.(*Entry[K, T]), at.Next()
		switch {
		case !e.until.IsZero() && !now.Before(e.until):
			l.remove(at)
		case !e.underway && !now.Before(e.again):
			e.underway = true
			due = append(due, e)
		case !e.underway:
			l.dueAt(e.again)
		}
		at = next
	}
	return due
}

// Answered records the server's answer to e: it has executed the release, or refused it.
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
	l.dueAt(e.again)
}

// Next returns when Due is to be called next, provided that there is a connection. An entry may
// become due only later, if another one was removed.
func (l *List[K, T]) Next() (next time.Time, ok bool) { return l.next, l.soon && l.entries.Len() > 0 }

// Forget drops the release of lease k: the server has executed another request that ends it.
func (l *List[K, T]) Forget(k K) {
	if at := l.byKey[k]; at != nil {
		l.remove(at)
	}
}

func (l *List[K, T]) remove(at *list.Element) {
	delete(l.byKey, at.Value.(*Entry[K, T]).key)
	l.entries.Remove(at)
}

// All returns the retained releases, oldest first.
func (l *List[K, T]) All() (all []T) {
	for at := l.entries.Front(); at != nil; at = at.Next() {
		all = append(all, at.Value.(*Entry[K, T]).What)
	}
	return all
}

// Len returns the number of entries.
func (l *List[K, T]) Len() int { return l.entries.Len() }

// Dropped returns how many entries were dropped because the list was full.
func (l *List[K, T]) Dropped() uint64 { return l.dropped }

// Untold records that the request for lease k was never sent. A release of the lease is
// then useless, and so is one retained while the request was waiting to be sent.
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

// Sending records that a request that may create lease k is about to be sent.
func (l *List[K, T]) Sending(k K) {
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
