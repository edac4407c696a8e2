package sqlstore

import "time"

// pace decides when a waiter looks again. It is a function of what the waiter has
// been notified.
type pace struct {
	ttl time.Duration
	// together is how many waiters can be granted the lock at once.
	together int64
	// position, holder and ahead are those of the last answer, and looks counts the
	// answers since they changed.
	position int
	holder   string
	ahead    int64
	looks    int
	patient  bool // see engine.patient
	// losses counts how often the place was lost: a waiter that barges had its turn.
	losses   int
	troubles int
}

// news notes an answer, and reports whether the waiter has another position or waits
// for another holder than before.
func (p *pace) news(a *answer) bool {
	p.troubles = 0
	same := a.position == p.position && a.holder.Owner == p.holder
	if same && a.ahead == p.ahead {
		p.looks++
	} else {
		p.looks = 0
	}
	p.position, p.holder, p.ahead = a.position, a.holder.Owner, a.ahead
	return !same
}

// slowest is the pause of the first waiter after many looks.
const slowest = 100 * time.Millisecond

// pause returns how long to wait before the next look. A waiter that the server will
// wake need not pause, unless it was woken for nothing: the one before it may have
// lost its session. Other waiters look often at first, and less often later. Those
// farther back look less often.
func (p *pace) pause(a *answer, seated bool) time.Duration {
	const first, behind, rarest = 4 * time.Millisecond, 25 * time.Millisecond, time.Second
	if seated && a.ahead != 0 && (p.looks <= 1 || a.refreshed && !a.waited) {
		return 0
	}
	position := 1 + int64(max(a.position-1, 0))/max(p.together, 1)
	d := first << min(p.looks/2, 8)
	if position > 1 {
		d = max(d, time.Duration(position)*behind)
	}
	d = min(d, slowest*time.Duration(min(position, 10)), rarest, p.ttl/8)
	if position <= 1 && a.endsIn > 0 {
		d = min(d, a.endsIn) // then the lease is over
	}
	return max(d, time.Millisecond)
}

// block returns how long a call may wait in the server. The place has to be refreshed in time.
//
// A patient waiter makes few calls: with one each 0.9 seconds, 200 waiters for locks that
// stayed held took a tenth of the hand-offs from another lock. Others block briefly. A blocked
// call keeps PostgreSQL from cleaning up old rows, and after a second it searches for
// deadlocks (deadlock_timeout), which holds up all sessions that lock.
func (p *pace) block() time.Duration {
	const brief, longest = 900 * time.Millisecond, 10 * time.Second
	if p.patient {
		return min(longest, p.ttl/6)
	}
	return min(brief, p.ttl/6)
}

// lost reports whether a waiter that barges has lost its turn often enough to be
// handed the lock.
func (p *pace) lost() bool { return p.losses > 3 }

// trouble returns how long to wait after an error.
func (p *pace) trouble() time.Duration {
	const least, most = 10 * time.Millisecond, time.Second
	p.troubles++
	return min(least<<min(p.troubles, 10), most, max(p.ttl/8, least))
}
