package script

import (
	"hash/maphash"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// Encoder encodes questions as commands. All of its fields may be zero, except Wall.
type Encoder struct {
	// GuardsAll is set if every request may only use servers that have forgotten nothing,
	// GuardsNone if none does. Otherwise the requirement of the request decides.
	GuardsAll, GuardsNone bool
	// Several is set if the node is one of several.
	Several     bool
	Fingerprint string           // of the membership
	Channel     string           // for pushes
	Wall        func() time.Time // time of day
	// KeyOf returns the key of a lock, and its slot, in a cluster; nil if there is none.
	KeyOf func(name string) (key string, slot int)
}

// guards reports whether a request may only use servers that have forgotten nothing.
func (e *Encoder) guards(r store.Lease) bool {
	return e.GuardsAll || r.Require >= store.CrashSafe && !e.GuardsNone
}

// keyFor returns the key of the lock called name. In a cluster, it also sets the slot to whose
// server c is sent.
func (e *Encoder) keyFor(c *Command, name string) (key string) {
	if e.KeyOf == nil {
		return name
	}
	key, slot := e.KeyOf(name)
	c.Slot = slot + 1
	return key
}

// Encode encodes a question as a command. It reuses the memory of the old command, if one
// is given.
func (e *Encoder) Encode(q driver.Question, c *Command) *Command {
	if c == nil {
		c = new(Command)
	}
	r := q.Lease
	c.Question = q
	r.Name = e.keyFor(c, r.Name)
	guarded := e.guards(r)
	if !r.Kind.IsMutex() {
		e.encodeKind(c, q, r, guarded)
		return c
	}
	begin := func(plain, marked *Script) []byte {
		if guarded {
			plain = marked
		}
		return resp.AppendWord(c.Begin(plain), r.Name)
	}
	mark := func(b []byte) []byte {
		return e.appendMark(c, b, guarded)
	}
	gate := func(b []byte) []byte {
		if c.gateAt = len(b); guarded {
			b = appendGate(b, e.Fingerprint)
		}
		return b
	}
	switch q.Op {
	case quorum.Acquire:
		b := begin(Acquire, AcquireGuarded)
		if plain(q) {
			c.restAt = len(b)
		}
		b = AppendCounterKey(b, r.Name)
		b = mark(appendTombstoneKey(b, r))
		b, flagAt := e.appendRequest(b, q, guarded)
		placeEnd := len(b) - len("\r\n")
		c.proposed = e.proposal()
		c.Bytes = gate(resp.AppendNumber(appendValue(b, r), c.proposed))
		c.setPlace(flagAt, placeEnd)
		c.Repeats = q.Again
	case quorum.Confirm:
		b := AppendCounterKey(resp.AppendWord(c.Begin(Confirm), r.Name), r.Name)
		c.Bytes = resp.AppendNumber(appendValue(e.appendMark(c, b, false), r), q.Token)
		c.gateAt = len(c.Bytes)
	case quorum.Extend:
		e.Extend(c, []store.Lease{r})
	case quorum.Heal:
		b := appendTombstoneKey(resp.AppendWord(c.Begin(Heal), r.Name), r)
		b = resp.AppendMillis(appendValue(e.appendMark(c, b, true), r), r.TTL)
		c.gateAt = len(b)
		c.Bytes = appendGate(b, e.Fingerprint)
	default: // quorum.Release
		if q.Next == nil {
			plain, whole := Release, e.KeyOf != nil && !guarded
			if whole {
				plain = ReleaseWhole
			}
			b := mark(resp.AppendWord(begin(plain, ReleaseGuarded), KeyBegin, r.Name, WaitsEnd))
			if whole {
				b = appendWholeKey(b, r.Name)
				c.argsAt = len(b)
			}
			c.Bytes = gate(appendValue(e.appendRelease(b, q, guarded), r))
			break
		}
		b := mark(resp.AppendWord(appendTombstoneKey(begin(Return, ReturnGuarded), r), KeyBegin, r.Name, WaitsEnd))
		b = appendEnding(appendValue(b, r), q)
		b = resp.AppendWord(e.appendProposal(b), toOf(q))
		next := q.Next.Lease
		b = resp.AppendWord(resp.AppendMillis(appendValue(b, next), next.TTL), modeOf(*q.Next))
		b, flagAt := e.appendPlace(b, *q.Next, e.guards(next))
		placeEnd := len(b) - len("\r\n")
		c.Bytes = gate(b)
		c.setPlace(flagAt, placeEnd)
	}
	c.lock = maphash.String(lockSeed, r.Name)
	return c
}

var lockSeed = maphash.MakeSeed()

// appendMark ends the keys of c, with the mark's key if the command looks at the mark.
func (e *Encoder) appendMark(c *Command, b []byte, guarded bool) []byte {
	c.markAt, c.print = len(b), ""
	if guarded {
		b, c.print = resp.AppendWord(b, MarkKey), e.Fingerprint
	}
	c.argsAt = len(b)
	return b
}

// appendProposal appends a proposed token for this grant, or for the next waiter's. Only
// the proposal uses the wall clock, and each node keeps it near its own clock: a wrong
// one costs a round trip and nothing else.
func (e *Encoder) appendProposal(b []byte) []byte {
	return resp.AppendNumber(b, e.proposal())
}

func (e *Encoder) proposal() uint64 {
	return uint64(max(0, e.Wall().Add(ProposalLead).UnixMicro()))
}

// appendRequest appends how a request for a lock differs from that of a new owner that does
// not wait; see readRequest.lua. It also returns the offset of the no-push flag; see
// Command.NoPushAt.
func (e *Encoder) appendRequest(b []byte, q driver.Question, guarded bool) (_ []byte, flagAt int) {
	letter := "a"
	if guarded {
		letter = "A"
	}
	var lasts [20]byte
	ttl := string(strconv.AppendUint(lasts[:0], resp.Millis(q.Lease.TTL), 10))
	if plain(q) {
		return resp.AppendWord(b, letter, ttl), 0
	}
	again, mode := "0", modeOf(q)
	if q.Again {
		again = "1"
	}
	if mode == "" {
		mode = "-"
	}
	if !q.Waits {
		return resp.AppendWord(b, letter, ttl, " ", again, mode, " "), 0
	}
	var room [192]byte
	place := e.placeOf(q, guarded).append(room[:0])
	b = resp.AppendWord(b, letter, ttl, " ", again, mode, " ", string(place))
	return b, len(b) - len("\r\n") - len(place)
}

// plain reports whether a request for a lock is that of a new owner that does not wait.
func plain(q driver.Question) bool {
	return !q.Waits && !q.Again && q.Lease.Attempt == ""
}

// appendRelease appends how a lease ends; see readEnding.lua.
func (e *Encoder) appendRelease(b []byte, q driver.Question, guarded bool) []byte {
	life, always, undo := endingOf(q)
	letters, attempt := "rR", q.Lease.Attempt
	if (life == 0 || always == "0") && attempt == "" {
		letters = "dD"
	}
	letter := letters[:1]
	if guarded {
		letter = letters[1:]
	}
	// Numbers one by one: a longer text would be allocated.
	var lasts, proposed [20]byte
	return resp.AppendWord(b, letter, string(strconv.AppendUint(lasts[:0], life, 10)), " ", always, " ", undo, " ",
		string(strconv.AppendUint(proposed[:0], e.proposal(), 10)), " ", attempt, " ", toOf(q))
}

// appendEnding appends how a lease ends: how long its tombstone lasts, 0 for none, whether
// it is left in any case, and whether the release only takes back its attempt.
func appendEnding(b []byte, q driver.Question) []byte {
	life, always, undo := endingOf(q)
	return resp.AppendWord(resp.AppendWord(resp.AppendNumber(b, life), always), undo)
}

// endingOf returns what appendEnding appends; life is in milliseconds.
func endingOf(q driver.Question) (life uint64, always, undo string) {
	always, undo = "0", "0"
	if q.Tombstone {
		life = resp.Millis(q.Lease.TTL)
	}
	if q.Renewed {
		always = "1"
	}
	if q.Undo && q.Lease.Attempt != "" {
		undo = "1"
	}
	return life, always, undo
}

// modeOf returns which requests for a place this is; see acquire.lua.
func modeOf(q driver.Question) string {
	switch {
	case !q.Waits:
		return ""
	case q.IfHeld:
		return "2"
	case q.QueueOnly:
		return "1"
	}
	return "0"
}

// toOf returns to whom a release gives way; see release.lua.
func toOf(q driver.Question) string {
	if q.GivesWay && q.To == "" {
		return " "
	}
	return q.To
}

// appendPlace appends the place that the acquire script gives the request. It also returns
// the offset of the no-push flag; see Command.NoPushAt.
func (e *Encoder) appendPlace(b []byte, q driver.Question, guarded bool) (_ []byte, flagAt int) {
	if !q.Waits {
		return resp.AppendWord(b, ""), 0
	}
	var room [192]byte
	text := e.placeOf(q, guarded).append(room[:0])
	b = resp.AppendWord(b, string(text))
	return b, len(b) - len("\r\n") - len(text)
}

// placeOf returns the place of a request that waits.
func (e *Encoder) placeOf(q driver.Question, guarded bool) place {
	p := place{rank: store.Rank(q.Lease.Owner), stamp: uint64(q.Stamp), shared: !q.Lease.Kind.IsMutex(), barge: q.Barge, channel: e.Channel}
	if guarded {
		p.guarded, p.fingerprint = true, e.Fingerprint
	}
	return p
}

// Inspect returns the command that inspects a lock. The argument guarded is set if the
// mark is to be read as well.
func (e *Encoder) Inspect(name string, guarded bool) *Command {
	c := new(Command)
	name = e.keyFor(c, name)
	if !guarded {
		c.Bytes = AppendCounterKey(resp.AppendWord(c.Begin(Inspect), name), name)
	} else {
		c.Bytes = resp.AppendWord(AppendCounterKey(resp.AppendWord(c.Begin(InspectGuarded), name), name), MarkKey)
	}
	c.Bytes = resp.AppendNumber(c.Bytes, store.MaxQueue)
	return c
}

// ListCommand returns the command that inspects the locks with these names.
func ListCommand(names []string, guarded bool) *Command {
	c, script := new(Command), List
	if guarded {
		script = ListGuarded
	}
	b := c.beginMany(script, len(names)-1)
	for _, name := range names {
		b = resp.AppendWord(b, name)
	}
	for _, name := range names {
		b = AppendCounterKey(b, name)
	}
	if guarded {
		b = resp.AppendWord(b, MarkKey)
	}
	c.Bytes = b
	return c
}
