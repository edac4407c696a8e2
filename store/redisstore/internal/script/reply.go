package script

import (
	"errors"
	"math"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// Reply is the result of a call on one node.
type Reply struct {
	// Outcome is Granted if the node executed the command: see value.
	Outcome store.Outcome
	// Sent is set if the command may have been executed although outcome is not Granted.
	Sent  bool
	Err   error
	Value resp.Value
	At    clock.Instant // when the reply arrived; zero if none did
	// Of a step in a list: the token that it proposed, and the server's clock.
	proposed uint64
	clock    clock.Instant
}

// ListReply is the reply to a list of steps, read once for all of them.
type ListReply struct {
	each  []resp.Value // the replies to the steps; nil: same is the reply to each of them
	same  Reply
	clock clock.Instant // the server's; zero: the reply has none
}

// ReplyToList reads the reply to a list of so many steps. An error is the reply to all of them,
// and so is a reply that is not one to such a list.
func ReplyToList(v resp.Value, steps int) (l ListReply) {
	if v.Kind == '*' && len(v.List) == steps+1 {
		if l.clock = clockIn(v.List[0]); l.clock != 0 || isNull(v.List[0]) {
			l.each = v.List[1:]
			return l
		}
	}
	switch l.clock = clockIn(v); {
	case v.Kind == '-':
		l.same = ReplyTo(v)
	case l.clock != 0: // all was done as asked
		l.same = ReplyTo(resp.Value{Kind: ':', Num: 1})
	default:
		l.same = ReplyTo(resp.Value{Kind: '$', Null: true})
	}
	return l
}

// Step returns the reply to one of the steps, for which the command c was.
func (l *ListReply) Step(i int, c *Command) Reply {
	r := l.same
	if l.each != nil {
		r = ReplyTo(l.each[i])
	}
	r.proposed, r.clock = c.proposed, l.clock
	return r
}

func isNull(v resp.Value) bool { return v.Kind == '$' && v.Null }

// clockIn reads the seconds and microseconds in a text; zero if it is not a time.
func clockIn(v resp.Value) clock.Instant {
	if v.Kind != '$' {
		return 0
	}
	s, rest, ok1 := number(v.Text)
	us, rest, ok2 := number(rest)
	if !ok1 || !ok2 || len(rest) > 0 {
		return 0
	}
	return clockAt(s, us)
}

// ReplyTo converts what the server answered into a reply.
func ReplyTo(v resp.Value) Reply {
	if v.Kind == '-' {
		outcome, err := Classify(resp.ErrorOf(v))
		return Reply{Outcome: outcome, Err: err}
	}
	return Reply{Outcome: store.Granted, Value: v}
}

// Parts splits the reply to a command that asks two questions: next is the answer to the
// second one.
func (r Reply) Parts(s *Script) (first, next Reply) {
	first, next = r, r
	if r.Outcome == store.Granted && s.is("return") {
		first.Value, next.Value = resp.Value{}, resp.Value{}
		if v := r.Value.List; len(v) == 2 {
			first.Value, next.Value = v[0], v[1]
		}
	}
	return first, next
}

// Answer reads the reply of a script that changes a lock. If the script should draw a
// token, a grant without one does not count: token 0 would pass for older than all
// others.
func (r Reply) Answer(s *Script) driver.Reply {
	draws := s.Does(Draws)
	if r.Outcome != store.Granted {
		// A command that failed did nothing and says nothing about the lease, which may
		// exist all the same. It counts as not sent.
		kind := quorum.Unsent
		switch {
		case r.Sent:
			kind = quorum.Unknown
		case r.Outcome == store.WrongType || !ErrorsSayNothing:
			kind = quorum.No
		}
		return driver.Reply{Kind: kind, Report: store.NodeOutcome{Outcome: r.Outcome, Err: r.Err}, At: r.At}
	}
	switch r.Value.Kind {
	case ':':
		yes := driver.Reply{Kind: quorum.Yes, Report: store.NodeOutcome{Outcome: store.Granted}, At: r.At}
		if r.Value.Num == 1 && s.is("release") { // see calls/release.lua
			return yes
		}
		if r.Value.Num == 1 && r.proposed > 0 && r.clock != 0 && s.is("acquire") { // see calls/steps.lua
			yes.Token, yes.Clock = r.proposed, r.clock
			return yes
		}
	case '$':
		if s.is("acquire") {
			if a, ok := grantOf(r.Value.Text); ok {
				a.At = r.At
				return a
			}
		}
	}
	if said := r.Value.List; len(said) > 0 && said[0].Kind == ':' {
		switch said[0].Num {
		case 1:
			a := driver.Reply{Kind: quorum.Yes, Report: store.NodeOutcome{Outcome: store.Granted}, At: r.At}
			rest, drew := said[1:], !draws
			if draws && len(rest) > 0 {
				a.Token, drew = rest[0].Number()
				rest = rest[1:]
			}
			if drew && (a.Token > 0 || !draws) {
				if len(rest) >= 3 && rest[2].Kind == ':' && rest[2].Num >= 0 {
					a.Slot, a.Slots = slotOf(rest[2:]), slotsOf(rest[2:])
					rest = rest[:2]
				}
				a.Clock = ClockOf(rest)
				return a
			}
		case 4:
			if len(said) >= 2 {
				return driver.Reply{Kind: quorum.Unsent, Report: OtherMembership(said[1]), At: r.At}
			}
		case 5:
			if len(said) >= 2 {
				return driver.Reply{Kind: quorum.Unsent, Report: OtherVersion(said[1]), At: r.At}
			}
		case 3:
			if len(said) >= 3 {
				return driver.Reply{Kind: quorum.Unsent, Report: QuarantinedOr(said[1], said[2], store.NodeOutcome{Outcome: store.Quarantined}), At: r.At}
			}
		case 2:
			return driver.Reply{Kind: quorum.No, Report: store.NodeOutcome{Outcome: store.Refused, Err: ErrReleasedOwner}, At: r.At}
		case 6:
			if len(said) >= 3 {
				return driver.Reply{Kind: quorum.No, Report: inUseAs(string(said[1].Text), string(said[2].Text)), At: r.At}
			}
		case 0, 7:
			if len(said) >= 3 && said[1].Kind == '$' && said[2].Kind == ':' {
				a := driver.Reply{Kind: quorum.No, Report: takenBy(said[1], said[2]), At: r.At}
				if a.Report.Outcome == store.Absent {
					a.Kind = quorum.Absent
				} else if h := a.Report.Holder; said[0].Num == 7 && a.Report.Outcome == store.Taken && !h.Foreign {
					a.Report = inUseBy("", h)
				}
				if len(said) >= 5 {
					a.Position, a.NoPush = position(said[3]), said[4].Num != 0
				}
				if len(said) >= 7 {
					a.Clock = ClockOf(said[5:7])
				}
				return a
			}
		}
	}
	// The script ran, so it may have done what was asked, whatever it answered.
	return driver.Reply{Kind: quorum.Unknown, Report: store.NodeOutcome{Outcome: store.Refused, Err: resp.Unexpected(r.Value)}, At: r.At}
}

// position reads a position in the queue of waiters, and bounds it.
func position(v resp.Value) int { return int(max(0, min(v.Num, math.MaxInt32))) }

// grantOf reads the grant of a mutex; see take.lua.
func grantOf(text []byte) (a driver.Reply, ok bool) {
	token, rest, ok1 := number(text)
	s, rest, ok2 := number(rest)
	us, rest, ok3 := number(rest)
	if !ok1 || !ok2 || !ok3 || len(rest) > 0 || token == 0 {
		return a, false
	}
	a = driver.Reply{Kind: quorum.Yes, Report: store.NodeOutcome{Outcome: store.Granted}, Token: token}
	a.Clock = clockAt(s, us)
	return a, true
}

// number reads the decimal number that a text begins with, and the space after it.
func number(text []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		n = 10*n + uint64(text[i]-'0')
	}
	if i == 0 || i > 19 || i < len(text) && text[i] != ' ' { // 19 digits cannot overflow
		return 0, nil, false
	}
	return n, text[min(i+1, len(text)):], true
}

// ClockOf reads the reply to TIME; zero if it is not a time.
func ClockOf(time []resp.Value) clock.Instant {
	if len(time) != 2 {
		return 0
	}
	s, ok1 := time[0].Number()
	us, ok2 := time[1].Number()
	if !ok1 || !ok2 {
		return 0
	}
	return clockAt(s, us)
}

// clockAt returns the instant at so many seconds and microseconds; zero if that is not a time.
func clockAt(s, us uint64) clock.Instant {
	if s > 1<<32 || us >= 1e6 {
		return 0
	}
	return clock.Instant(s*1e9 + us*1e3)
}

// mostMillis is how many milliseconds a time.Duration can hold.
const mostMillis = math.MaxInt64 / int64(time.Millisecond)

// takenBy reads the value of a lock's key, and its PTTL.
func takenBy(value, pttl resp.Value) store.NodeOutcome {
	ms := pttl.Num
	if ms == -2 { // the key does not exist; a lock may have an empty value
		return store.NodeOutcome{Outcome: store.Absent}
	}
	if ms == 0 { // less than a millisecond is left, but not nothing
		ms = 1
	}
	if record := recordOf(value, pttl); record != nil {
		return record.outcome(ms)
	}
	ms = min(ms, mostMillis) // another client's key can last for longer
	return store.NodeOutcome{Outcome: store.Taken, Holder: DecodeValue(string(value.Text)), ExpiresIn: time.Duration(ms) * time.Millisecond}
}

var ErrReleasedOwner = errors.New("this owner was already released")
