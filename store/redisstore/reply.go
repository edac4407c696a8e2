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

// reply is what the node made of a call.
type reply struct {
	// outcome is Granted when the node ran the command: see value.
	outcome store.Outcome
	// sent says whether the command may have been applied although outcome is
	// not Granted.
	sent  bool
	err   error
	value value
	at    clock.Instant // when it came in; zero where nothing did
}

// hearing is what the server said, as a reply.
func hearing(v value) reply {
	if v.kind == '-' {
		outcome, err := classifyReply(string(v.text))
		return reply{outcome: outcome, err: err}
	}
	return reply{outcome: store.Granted, value: v}
}

// parts are the replies to what two questions say at once: the second one's is next.
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

// answer reads the reply to one of the scripts that change something. Of one that
// draws a token, a yes without is none: a grant of token 0 would pass for older
// than all others.
func (r reply) answer(s *script) driver.Reply {
	draws := s.draws()
	if r.outcome != store.Granted {
		// An error reply did nothing and says nothing of the lease, which may be
		// there all the same: no more than if the command had never left.
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
				return driver.Reply{Kind: quorum.Unsent, Report: otherList(said[1]), At: r.at}
			}
		case 5:
			if len(said) >= 2 {
				return driver.Reply{Kind: quorum.Unsent, Report: otherVersion(said[1]), At: r.at}
			}
		case 3:
			if len(said) >= 3 {
				return driver.Reply{Kind: quorum.Unsent, Report: shutFor(said[1], said[2], store.NodeOutcome{Outcome: store.Quarantined}), At: r.at}
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
	// It ran, so whatever it says, it may have done what was asked.
	return driver.Reply{Kind: quorum.Unknown, Report: store.NodeOutcome{Outcome: store.Refused, Err: notUnderstood(r.value)}, At: r.at}
}

// position reads one in the line, where nobody needs to know more exactly how far
// away it is.
func position(v value) int { return int(max(0, min(v.num, math.MaxInt32))) }

// clockOf reads what TIME said; zero: nothing.
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

func notUnderstood(v value) error { return fmt.Errorf("answer not understood: %.80s", v) }

// number reads one that came as a string: a token, a cursor.
func (v value) number() (uint64, bool) {
	if v.kind != '$' {
		return 0, false
	}
	t, err := strconv.ParseUint(string(v.text), 10, 64)
	return t, err == nil
}

// mostMillis is how many of them a time.Duration can be.
const mostMillis = math.MaxInt64 / int64(time.Millisecond)

// takenBy reads the value of a lock's key and what PTTL said of it.
func takenBy(value, pttl value) store.NodeOutcome {
	ms := pttl.num
	if ms == -2 { // a lock may well have an empty value
		return store.NodeOutcome{Outcome: store.Absent}
	}
	if ms == 0 { // less than a millisecond is left, not nothing
		ms = 1
	}
	ms = min(ms, mostMillis) // a stranger's key can last for longer
	return store.NodeOutcome{Outcome: store.Taken, Holder: decodeValue(string(value.text)), ExpiresIn: time.Duration(ms) * time.Millisecond}
}

var errReleasedOwner = errors.New("this owner was already released")
