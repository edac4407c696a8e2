package etcdstore

import (
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// A leader that stands still for longer than a lease lasts, such as in a virtual machine that is
// paused, is replaced. When it goes on, it may have leases revoked that live: it knows nothing of
// the keep-alives that its successor has answered. etcd 3.6.15 does so in most cases if more
// than 16 leases are over by its count. It asks for the first 16 before it learns that it was
// replaced, and for the others when these requests have timed out, seven seconds later.
//
// It does not know the leases that were granted in the term of a successor: it learns of these and
// of the successor at once. So a keep-alive counts only in the term of the leader in which the lease
// was granted, and a holder moves to another lease after each change of the leader. Then no leader
// before the one that has answered the keep-alive knows the lease.
//
// The header of an answer has the term of the last entry of the log that the member has applied. So
// that term has begun, and an entry that is made later is of that term or of a later one.

// lease is an etcd lease. One place uses it at a time.
type lease struct {
	id clientv3.LeaseID
	// seconds is what was asked for, and lasts what the server gave. seconds is 0 for a
	// lease that another handle asked for: it is not ours to use again or to revoke.
	seconds int64
	lasts   time.Duration
	// term is a term of the leader that had begun when the lease was asked for; 0: none is known.
	term uint64
	// alive is when the grant was sent, or the last keep-alive that counts.
	alive atomic.Int64
	// kept is when the last keep-alive was sent that was answered for a place which does not hold its
	// lock yet. It counts later than that, or never.
	kept clock.Instant
	// tainted is set if a request that attaches a key to the lease may still be in
	// flight. Such a lease is revoked and not used again.
	tainted atomic.Bool
}

func (l *lease) since() clock.Instant { return clock.Instant(l.alive.Load()) }

// keptAlive notes a keep-alive that was sent at sent, and reports whether it counts. Since it was
// answered, a majority has answered a request in this term, and has shown that the lease is there.
func (l *lease) keptAlive(sent clock.Instant, term uint64) bool {
	if !l.isOf(term) {
		return false
	}
	for {
		was := l.alive.Load()
		if was >= int64(sent) || l.alive.CompareAndSwap(was, int64(sent)) {
			return true
		}
	}
}

// covers reports whether the lease lasts for ttl from now.
func (l *lease) covers(ttl time.Duration, now clock.Instant) bool {
	return l.since().Add(l.lasts) >= now.Add(ttl+ttl/100)
}

// over reports whether the lease may have expired.
func (l *lease) over(now clock.Instant) bool { return now >= l.since().Add(l.lasts) }

// isOf reports whether the lease was granted in this term, or later.
func (l *lease) isOf(term uint64) bool { return l.term >= term }

// answered is called when a majority has answered a request, which was sent after the last
// keep-alive was answered, and has shown that the lease of a place is there. The term is the last
// that is known now.
func (l *lease) answered(term uint64) { l.keptAlive(l.kept, term) }
