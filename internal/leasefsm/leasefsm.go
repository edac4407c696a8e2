// Package leasefsm is the life of one lease as its holder sees it:
//
//	waiting -> held <-> jeopardy -> lost
//	              \________________-> released
//
// A held lease may pass from one holder to the next within its process, which
// begins a hold of its own on what the store was asked for once.
//
// It is a pure value: Step takes a state, an event and the present instant and
// returns the next state. It starts no timer and sends nothing; whoever drives
// it asks Next when to come back. All timing of leases is decided here, so a
// checker that drives this package drives the timing that is shipped.
package leasefsm

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
)

// State is where a lease stands.
type State uint8

// The states. Lost and Released are final.
const (
	// Waiting: asked for, not granted.
	Waiting State = iota
	// Held: granted, and the last renewal (if one was due) succeeded.
	Held
	// Jeopardy: renewals fail, but validity remains.
	Jeopardy
	// Lost: the holder was told that it may no longer act.
	Lost
	// Released: the holder gave it back.
	Released
)

var stateNames = [...]string{"waiting", "held", "jeopardy", "lost", "released"}

func (s State) String() string { return stateNames[s] }

// Config is what does not change during a lease's life.
type Config struct {
	// TTL each grant and renewal lasts, counted by the store.
	TTL time.Duration
	// Notice is how long before the end of validity the holder is told, so
	// that it has stopped when validity ends. Less than TTL.
	Notice time.Duration
	// Renew is the time between renewals; zero: never renewed.
	Renew time.Duration
	// MaxHold bounds the whole hold, renewals included; zero: no bound.
	MaxHold time.Duration
}

// Lease is one lease's life. It is a plain value: copying it forks it.
type Lease struct {
	Config
	state State
	cause Cause
	// since is the start of the attempt that was granted, or of the hold that it
	// was passed on to.
	since clock.Instant
	// proven is the end of validity that the store has agreed to. It moves
	// forward only when a renewal is proven, and never back.
	proven clock.Instant
	// until is the end of validity for this holder: proven, within MaxHold.
	until clock.Instant
	// renewAt is when the next renewal is due; meaningless while renewing.
	renewAt  clock.Instant
	renewing bool
	failures int
}

// Cause says why a lease was lost.
type Cause uint8

// The causes.
const (
	NotLost Cause = iota
	// Expired: validity was about to end without a proven renewal.
	Expired
	// Denied: the store said that the lock is no longer ours.
	Denied
	// HeldMax: the longest hold the holder allowed itself is over.
	HeldMax
)

var causeNames = [...]string{"not lost", "its validity ended before a renewal succeeded", "the store no longer has it", "the longest hold allowed is over"}

func (c Cause) String() string { return causeNames[c] }

// Event is what happened to a lease.
type Event uint8

// The events. Start, where it matters, is an instant read before the request
// left.
const (
	// Granted: the store granted the attempt begun at start.
	Granted Event = iota
	// RenewalSent: a renewal is about to leave.
	RenewalSent
	// Renewed: the store proved the renewal begun at start.
	Renewed
	// RenewalUnknown: the renewal failed or its outcome is unknown.
	RenewalUnknown
	// RenewalDenied: the store said the lease is certainly gone.
	RenewalDenied
	// Tick: time has passed.
	Tick
	// Passed: the holder has let go, and another one of its process goes on.
	Passed
	// Release: the holder gives it back.
	Release
)

// New is a lease that was asked for and not yet granted.
func New(c Config) Lease { return Lease{Config: c} }

// Step applies one event. start is used by Granted and Renewed only. Every
// step first lets time pass: an event that arrives after the holder had to be
// told finds the lease lost, however late a timer may be.
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
		}
	case Renewed:
		l.renewing = false
		if l.Live() {
			// Counted from before the request left, and only here, where pass
			// has just found the old validity unexpired: Redlock's own text
			// lacks that condition, and without it a renewal can be "granted"
			// by nodes that meanwhile granted the lock to others and lost it.
			l.proven = max(l.proven, validity.Until(start, l.TTL))
			l.until = l.bound(l.proven)
			l.state, l.failures = Held, 0
			l.renewAt = start.Add(l.Renew)
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
	case Passed:
		if l.Live() {
			l.since = now
			l.until = l.bound(l.proven)
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

// bound keeps until within the longest hold.
func (l Lease) bound(until clock.Instant) clock.Instant {
	if l.MaxHold > 0 {
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

// tellAt is when the holder is told that it loses the lease.
func (l Lease) tellAt() clock.Instant { return l.until.Add(-l.Notice) }

// retryDelay is the pause after a renewal of unknown outcome: a twelfth of the
// renewal interval at first, so that several tries fit into what remains, then
// doubling up to the interval's quarter.
func (l Lease) retryDelay() time.Duration {
	d := l.Renew / 12 << min(l.failures-1, 2)
	return max(min(d, l.Renew/4), time.Millisecond)
}

// Live says whether the holder may act: held or in jeopardy. It is as of the
// last step; Valid asks for an instant.
func (l Lease) Live() bool { return l.state == Held || l.state == Jeopardy }

// Valid says whether the lease may be trusted at now: it was granted, is not
// lost or released, and its holder need not be told yet.
func (l Lease) Valid(now clock.Instant) bool { return l.pass(now).Live() }

// Passable says whether what is left at now is worth passing on: the next
// holder is not lost, will not be within a third of a TTL even if nothing is
// proven any more, and has renewals to come. Without any it would get less of a
// lease than it asked for.
func (l Lease) Passable(now clock.Instant) bool {
	if !passWhileValid {
		return true
	}
	return l.Valid(now) && l.Renew > 0 && l.proven.Add(-l.Notice).Sub(now) >= validity.RenewAfter(l.TTL)
}

// Due says whether a renewal should be sent at now.
func (l Lease) Due(now clock.Instant) bool {
	return l.Valid(now) && !l.renewing && l.renews() && now >= l.renewAt
}

// renews says whether another renewal could move the deadline.
func (l Lease) renews() bool {
	return l.Renew > 0 && (l.MaxHold == 0 || l.until < l.since.Add(l.MaxHold))
}

// Next is the instant at which the lease wants a Tick, or a renewal: false
// when nothing will ever happen by itself.
func (l Lease) Next() (clock.Instant, bool) {
	if !l.Live() {
		return 0, false
	}
	if l.renews() && !l.renewing {
		return min(l.renewAt, l.tellAt()), true
	}
	return l.tellAt(), true
}

// State is where the lease stood after the last step.
func (l Lease) State() State { return l.state }

// Cause says why it was lost.
func (l Lease) Cause() Cause { return l.cause }

// Since is the start of the attempt that was granted, or of the present hold.
func (l Lease) Since() clock.Instant { return l.since }

// Until is the end of validity; it does not move once the lease is lost.
func (l Lease) Until() clock.Instant { return l.until }
