package redisstore

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// reply is the result of a call on one node.
type reply struct {
	// outcome is Granted if the node executed the command: see value.
	outcome store.Outcome
	// sent is set if the command may have been executed although outcome is not Granted.
	sent  bool
	err   error
	value value
	at    clock.Instant // when the reply arrived; zero if none did
}

// replyTo converts what the server answered into a reply.
func replyTo(v value) reply {
	if v.kind == '-' {
		outcome, err := classifyReply(string(v.text))
		return reply{outcome: outcome, err: err}
	}
	return reply{outcome: store.Granted, value: v}
}

// parts splits the reply to a command that asks two questions: next is the answer to the
// second one.
func (r reply) parts(s *script) (first, next reply) {
	first, next = r, r
	if r.outcome == store.Granted && s.returns() {
		first.value, next.value = value{}, value{}
		if v := r.value.list; len(v) == 2 {
			first.value, next.value = v[0], v[1]
		}
	}
	return first, next
}

// answer reads the reply of a script that changes a lock. If the script should draw a
// token, a grant without one does not count: token 0 would pass for older than all
// others.
func (r reply) answer(s *script) driver.Reply {
	draws := s.draws()
	if r.outcome != store.Granted {
		// A command that failed did nothing and says nothing about the lease, which may
		// exist all the same. It counts as not sent.
		kind := quorum.Unsent
		switch {
		case r.sent:
			kind = quorum.Unknown
		case r.outcome == store.WrongType || !errorsSayNothing:
			kind = quorum.No
		}
		return driver.Reply{Kind: kind, Report: store.NodeOutcome{Outcome: r.outcome, Err: r.err}, At: r.at}
	}
	if said := r.value.list; len(said) > 0 && said[0].kind == ':' {
		switch said[0].num {
		case 1:
			a := driver.Reply{Kind: quorum.Yes, Report: store.NodeOutcome{Outcome: store.Granted}, At: r.at}
			rest, drew := said[1:], !draws
			if draws && len(rest) > 0 {
				a.Token, drew = rest[0].number()
				rest = rest[1:]
			}
			if drew && (a.Token > 0 || !draws) {
				if len(rest) == 3 && rest[2].kind == ':' && rest[2].num >= 0 {
					a.Counted, a.Reserved = true, uint64(rest[2].num)
					rest = rest[:2]
				}
				a.Clock = clockOf(rest)
				a.Waiting = s == confirmScript && len(rest) > 0 && rest[0].num != 0
				return a
			}
		case 4:
			if len(said) >= 2 {
				return driver.Reply{Kind: quorum.Unsent, Report: otherMembership(said[1]), At: r.at}
			}
		case 5:
			if len(said) >= 2 {
				return driver.Reply{Kind: quorum.Unsent, Report: otherVersion(said[1]), At: r.at}
			}
		case 3:
			if len(said) >= 3 {
				return driver.Reply{Kind: quorum.Unsent, Report: quarantinedOr(said[1], said[2], store.NodeOutcome{Outcome: store.Quarantined}), At: r.at}
			}
		case 2:
			return driver.Reply{Kind: quorum.No, Report: store.NodeOutcome{Outcome: store.Refused, Err: errReleasedOwner}, At: r.at}
		case 0:
			if len(said) >= 3 && said[1].kind == '$' && said[2].kind == ':' {
				a := driver.Reply{Kind: quorum.No, Report: takenBy(said[1], said[2]), At: r.at}
				if a.Report.Outcome == store.Absent {
					a.Kind = quorum.Absent
				}
				if len(said) >= 5 {
					a.Position, a.NoPush = position(said[3]), said[4].num != 0
				}
				if len(said) >= 7 {
					a.Clock = clockOf(said[5:7])
				}
				return a
			}
		}
	}
	// The script ran, so it may have done what was asked, whatever it answered.
	return driver.Reply{Kind: quorum.Unknown, Report: store.NodeOutcome{Outcome: store.Refused, Err: notUnderstood(r.value)}, At: r.at}
}

// position reads a position in the queue of waiters, and bounds it.
func position(v value) int { return int(max(0, min(v.num, math.MaxInt32))) }

// clockOf reads the reply to TIME; zero if it is not a time.
func clockOf(time []value) clock.Instant {
	if len(time) != 2 {
		return 0
	}
	s, ok1 := time[0].number()
	us, ok2 := time[1].number()
	if !ok1 || !ok2 || s > 1<<32 || us >= 1e6 {
		return 0
	}
	return clock.Instant(s*1e9 + us*1e3)
}

func notUnderstood(v value) error { return fmt.Errorf("invalid answer: %.80s", v) }

// number reads a number that was sent as a string: a token or a cursor.
func (v value) number() (uint64, bool) {
	if v.kind != '$' {
		return 0, false
	}
	t, err := strconv.ParseUint(string(v.text), 10, 64)
	return t, err == nil
}

// mostMillis is how many milliseconds a time.Duration can hold.
const mostMillis = math.MaxInt64 / int64(time.Millisecond)

// takenBy reads the value of a lock's key, and its PTTL.
func takenBy(value, pttl value) store.NodeOutcome {
	ms := pttl.num
	if ms == -2 { // the key does not exist; a lock may have an empty value
		return store.NodeOutcome{Outcome: store.Absent}
	}
	if ms == 0 { // less than a millisecond is left, but not nothing
		ms = 1
	}
	ms = min(ms, mostMillis) // another client's key can last for longer
	return store.NodeOutcome{Outcome: store.Taken, Holder: decodeValue(string(value.text)), ExpiresIn: time.Duration(ms) * time.Millisecond}
}

var errReleasedOwner = errors.New("this owner was already released")
