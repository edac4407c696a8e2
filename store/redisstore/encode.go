package redisstore

import (
	"cmp"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// encode encodes a question as a command. It reuses the memory of the old command, if one
// is given.
func (s *Store) encode(q driver.Question, old any) any {
	c, _ := old.(*command)
	if c == nil {
		c = new(command)
	}
	r := q.Lease
	c.question = q
	if s.route != nil {
		r.Name = clusterName(r.Name)
		c.slot = slotOf(r.Name) + 1
	}
	guarded := s.guards(r)
	begin := func(plain, marked *script) []byte {
		if guarded {
			plain = marked
		}
		return resp.AppendWord(c.begin(plain), r.Name)
	}
	mark := func(b []byte) []byte {
		if guarded {
			b = resp.AppendWord(b, markKey)
		}
		return b
	}
	gate := func(b []byte) []byte {
		if guarded {
			b = appendGate(b, s.membership.fingerprint)
		}
		return b
	}
	switch q.Op {
	case quorum.Acquire:
		b := appendCounterKey(begin(acquireScript, guardedScript), r.Name)
		b = mark(appendTombKey(b, r))
		b = s.appendProposal(resp.AppendMillis(appendValue(b, r), r.TTL))
		b = resp.AppendNumber(b, uint64(q.Spare))
		b, tells := s.appendPlace(b, q, guarded)
		if c.bytes = gate(b); tells > 0 {
			c.noPushAt = len(c.bytes) - tells
		}
		c.repeats = q.Again
	case quorum.Confirm:
		b := appendCounterKey(resp.AppendWord(c.begin(confirmScript), r.Name), r.Name)
		b = resp.AppendNumber(appendValue(b, r), q.Token)
		if q.Least > 0 {
			c.bytes = resp.AppendNumber(b, q.Least)
		} else {
			c.bytes = resp.AppendWord(b, "")
		}
	case quorum.Extend:
		s.extend(c, []store.Lease{r})
	case quorum.Heal:
		b := appendTombKey(resp.AppendWord(c.begin(healScript), r.Name), r)
		b = resp.AppendMillis(appendValue(resp.AppendWord(b, markKey), r), r.TTL)
		c.bytes = appendGate(b, s.membership.fingerprint)
	default: // quorum.Release
		life, always := time.Duration(0), "0"
		if q.Tomb {
			life = r.TTL
		}
		if q.Renewed {
			always = "1"
		}
		if q.Undo && r.Attempt != "" {
			always += "u"
		}
		plain, marked := releaseScript, resignScript
		if q.Next != nil {
			plain, marked = returnScript, rejoinScript
		}
		b := mark(appendTombKey(begin(plain, marked), r))
		to := q.To
		if q.GivesWay && to == "" {
			to = " "
		}
		b = resp.AppendWord(resp.AppendMillis(appendValue(b, r), life), always)
		b = resp.AppendWord(s.appendProposal(b), to)
		tells := 0
		if q.Next != nil {
			next := q.Next.Lease
			b, tells = s.appendPlace(resp.AppendMillis(appendValue(b, next), next.TTL), *q.Next, s.guards(next))
		}
		if c.bytes = gate(b); tells > 0 {
			c.noPushAt = len(c.bytes) - tells
		}
	}
	return c
}

// appendProposal appends a proposed token for this grant, or for the next waiter's. Only
// the proposal uses the wall clock, and each node keeps it near its own clock: a wrong
// one costs a round trip and nothing else.
func (s *Store) appendProposal(b []byte) []byte {
	return resp.AppendNumber(b, uint64(max(0, s.wall().Add(proposalLead).UnixMicro())))
}

// channelBegin is the prefix of all channels that this package uses.
const channelBegin = "leasehold:to:"

// appendPlace appends what the acquire script needs to enqueue the request. It also
// returns the offset of the no-push flag; see command.tells.
func (s *Store) appendPlace(b []byte, q driver.Question, guarded bool) (_ []byte, tells int) {
	if !q.Waits {
		return resp.AppendWord(b, ""), 0
	}
	again, stand, flags := byte('0'), byte('0'), ""
	if q.Again {
		again = '1'
	}
	if q.IfHeld {
		stand = '2'
	} else if q.QueueOnly {
		stand = '1'
	}
	if q.Barge {
		flags += "b"
	}
	if guarded {
		flags += "g" + s.membership.fingerprint
	}
	var room [128]byte
	rank := strconv.AppendUint(room[:0], store.Rank(q.Lease.Owner), 10)
	place := append(rank[len(rank):], again, stand, '0')
	for range ranks - len(rank) {
		place = append(place, '0')
	}
	place = append(append(place, rank...), ' ')
	place = append(strconv.AppendUint(place, uint64(q.Stamp), 10), ' ')
	place = append(strconv.AppendInt(place, int64(q.Spare), 10), ' ')
	place = append(append(place, cmp.Or(flags, "-")...), ' ')
	place = append(place, s.channel...)
	b = resp.AppendWord(b, string(place))
	return b, len(b) - len(place)
}

// ranks is the least number of digits of a rank.
const ranks = 16

func (s *Store) inspectCall(name string) *command {
	c := new(command)
	if s.route != nil {
		name = clusterName(name)
		c.slot = slotOf(name) + 1
	}
	if !s.guarded.Load() {
		c.bytes = appendCounterKey(resp.AppendWord(c.begin(inspectScript), name), name)
	} else {
		c.bytes = resp.AppendWord(appendCounterKey(resp.AppendWord(c.begin(regardScript), name), name), markKey)
	}
	c.bytes = resp.AppendNumber(c.bytes, store.MaxLine)
	return c
}
