// Package leasefsm is the state machine of one lease, as its holder sees it:
//
//	waiting -> held <-> jeopardy -> lost
//	              \________________-> released
//
// A lease is a pure value: Step takes an event and the current instant and
// returns the next state. It starts no timer and sends nothing; Next tells the
// driver when to call again. All timing of leases is decided here, so a checker
// that drives this package checks the timing of the real program.
package leasefsm

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
)

// State is the state of a lease.
type State uint8

// The states. Lost and Released are final.
const (
	// Waiting means that the lease was requested and not yet granted.
	Waiting State = iota
	// Held means that it was granted and that no renewal has failed since.
	Held
	// Jeopardy means that renewals fail while validity remains.
	Jeopardy
	// Lost means that the holder was notified that it may no longer act.
	Lost
	// Released means that the holder released the lease.
	Released
)

var stateNames = [...]string{"waiting", "held", "jeopardy", "lost", "released"}

func (s State) String() string { return stateNames[s] }

// Config has what does not change during the life of a lease.
type Config struct {
	// TTL is how long each grant and renewal lasts, counted by the store.
	TTL time.Duration
	// Notice is how long before the end of validity the holder is notified, so
	// that it has stopped by then. It is less than TTL.
	Notice time.Duration
	// Renew is the time between renewals. Zero means that the lease is never
	// renewed.
	Renew time.Duration
	// MaxHold bounds the whole hold, renewals included. Zero means no bound.
	MaxHold time.Duration
}

// Lease is the life of one lease. It is a plain value: copying it forks it.
type Lease struct {
	Config
	state State
	cause Cause
	// since is the start of the granted attempt.
	since clock.Instant
	// proven is the end of validity that the store has confirmed. It moves only
	// forward, and only with a proven renewal.
	proven clock.Instant
	// until is proven, limited by MaxHold.
	until clock.Instant
	// renewAt is when the next renewal is due. It has no meaning while renewing
	// is set.
	renewAt  clock.Instant
	renewing bool
	// hinted asks for a renewal ahead of its time, and early says that the last one
	// was such a renewal.
	hinted, early bool
	failures      int
}

// Cause says why a lease was lost.
type Cause uint8

// The causes.
const (
	NotLost Cause = iota
	// Expired means that validity was about to end without a proven renewal.
	Expired
	// Denied means that the store said that this owner no longer holds the lock.
	Denied
	// HeldMax means that the hold reached Config.MaxHold.
	HeldMax
)

var causeNames = [...]string{"not lost", "its validity ended before a renewal succeeded", "the store no longer has it", "the longest hold allowed is over"}

func (c Cause) String() string { return causeNames[c] }

// Event is something that happens to a lease.
type Event uint8

// The events. start is the argument of Step: an instant read before the request
// was sent.
const (
	// Granted means that the store granted the attempt begun at start.
	Granted Event = iota
	// RenewalSent means that a renewal that was due is about to be sent.
	RenewalSent
	// Renewed means that the store proved the renewal begun at start.
	Renewed
	// RenewalUnknown means that the renewal failed or that its outcome is unknown.
	RenewalUnknown
	// RenewalDenied means that the store said the lease is certainly gone.
	RenewalDenied
	// Tick means that time has passed.
	Tick
	// Hinted means that somebody says that the lease is gone, which a renewal will
	// show. It does no harm if that is not so: between two renewals that were due,
	// one is made ahead of its time.
	Hinted
	// Release means that the holder releases the lease.
	Release
)

// New returns a lease that was requested but not yet granted.
func New(c Config) Lease { return Lease{Config: c} }

// Step returns the lease after one event. Only Granted and Renewed use start.
// Every step first applies the passage of time: an event that arrives after the
// holder had to be notified finds the lease lost, however late a timer may be.
func (l Lease) Step(e Event, start, now clock.Instant) Lease {
	if renewInTime || e != Renewed {
		l = l.pass(now)
	}
	switch e {
	case Granted:
		if l.state == Waiting {
			return l.granted(start, now)
		}
	case RenewalSent:
		if l.Live() {
			l.renewing = true
			l.hinted, l.early = false, l.hinted
		}
	case Renewed:
		l.renewing = false
		if l.Live() {
			// The new validity counts from before the request was sent, and
			// only if pass has just found the old one unexpired. Redlock's own
			// text lacks this condition. Without it, nodes that meanwhile
			// granted the lock to others and lost it could grant a renewal.
			l.proven = max(l.proven, validity.Until(start, l.TTL))
			l.until = l.bound(l.proven)
			l.state, l.failures = Held, 0
			l.renewAt = start.Add(l.Renew)
			if l.hinted { // after the request was sent
				l.renewAt = now
			}
		}
	case RenewalUnknown:
		l.renewing = false
		if l.Live() {
			l.state = Jeopardy
			l.failures++
			l.renewAt = now.Add(l.retryDelay())
		}
	case RenewalDenied:
		l.renewing = false
		if l.Live() {
			l.state, l.cause = Lost, Denied
		}
	case Hinted:
		if l.Live() && !l.early {
			l.hinted, l.renewAt = true, min(l.renewAt, now)
		}
	case Release:
		if l.Live() {
			l.state = Released
		}
	}
	return l
}

func (l Lease) granted(start, now clock.Instant) Lease {
	if !fromStart {
		start = now
	}
	l.since = start
	l.proven = validity.Until(start, l.TTL)
	l.until = l.bound(l.proven)
	l.renewAt = start.Add(l.Renew)
	l.state = Held
	return l.pass(now) // a grant that took too long is lost at once
}

// Bounded returns l with a hold of maxHold at most from now on, if that is not zero, and renew
// as the time between renewals. Step it afterwards.
func (l Lease) Bounded(maxHold, renew time.Duration, now clock.Instant) Lease {
	l.Renew, l.MaxHold = renew, 0
	if maxHold > 0 {
		l.MaxHold = now.Sub(l.since) + maxHold
	}
	l.until = l.bound(l.proven)
	return l
}

// bound limits until by MaxHold.
func (l Lease) bound(until clock.Instant) clock.Instant {
	if l.MaxHold > 0 && boundHold {
		return min(until, l.since.Add(l.MaxHold))
	}
	return until
}

func (l Lease) pass(now clock.Instant) Lease {
	if l.Live() && now >= l.tellAt() {
		l.state, l.cause = Lost, Expired
		if l.MaxHold > 0 && now >= l.since.Add(l.MaxHold-l.Notice) {
			l.cause = HeldMax
		}
	}
	return l
}

// tellAt is when the holder is notified that it loses the lease.
func (l Lease) tellAt() clock.Instant { return l.until.Add(-l.Notice) }

// retryDelay is the pause after a renewal of unknown outcome. It starts at a
// twelfth of the renewal interval, so that several attempts fit into the
// remaining validity, and doubles up to a quarter of the interval.
func (l Lease) retryDelay() time.Duration {
	d := l.Renew / 12 << min(l.failures-1, 2)
	return max(min(d, l.Renew/4), time.Millisecond)
}

// Live reports whether the holder may act, which is in states Held and Jeopardy.
// It is as of the last step; see Valid.
func (l Lease) Live() bool { return l.state == Held || l.state == Jeopardy }

// Valid reports whether the lease may be trusted at now: it was granted, is
// neither lost nor released, and its holder need not be notified yet.
func (l Lease) Valid(now clock.Instant) bool { return l.pass(now).Live() }

// Due reports whether a renewal should be sent at now.
func (l Lease) Due(now clock.Instant) bool {
	return l.Valid(now) && !l.renewing && l.renews() && now >= l.renewAt
}

// renews reports whether another renewal could extend validity.
func (l Lease) renews() bool {
	return l.Renew > 0 && (l.MaxHold == 0 || l.until < l.since.Add(l.MaxHold))
}

// Next returns when the lease next needs a Tick or a renewal. It returns false if
// nothing more happens without an event.
func (l Lease) Next() (clock.Instant, bool) {
	if !l.Live() {
		return 0, false
	}
	if l.renews() && !l.renewing {
		return min(l.renewAt, l.tellAt()), true
	}
	return l.tellAt(), true
}

// State returns the state after the last step.
func (l Lease) State() State { return l.state }

// Cause returns why the lease was lost.
func (l Lease) Cause() Cause { return l.cause }

// Since returns the start of the granted attempt.
func (l Lease) Since() clock.Instant { return l.since }

// Until returns the end of validity. It does not change once the lease is lost.
func (l Lease) Until() clock.Instant { return l.until }
