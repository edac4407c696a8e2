package script

import (
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// kindText returns what the scripts call a kind; see readRecord.lua. It is empty for a mutex.
func kindText(k store.Kind) string {
	switch k = k.Normal(); {
	case k.IsMutex():
		return ""
	case k.Shared:
		return "r" + strconv.FormatInt(k.Limit, 10)
	}
	return "s" + strconv.FormatInt(k.Limit, 10)
}

// parseKind reads the result of kindText.
func parseKind(text string) (k store.Kind, ok bool) {
	if text == "" {
		return store.Kind{Limit: 1}, true
	}
	limit, err := strconv.ParseInt(text[1:], 10, 64)
	k = store.Kind{Limit: limit, Shared: text[0] == 'r'}
	return k, err == nil && limit > 0 && (k.Shared || text[0] == 's')
}

// encodeKind makes c the command for a question about a lock that several can hold, as
// Encode does. The lease r has the name of the lock's key.
func (e *Encoder) encodeKind(c *Command, q driver.Question, r store.Lease, guarded bool) {
	begin := func(plain, marked *Script) []byte {
		if guarded {
			plain = marked
		}
		return resp.AppendWord(c.Begin(plain), r.Name)
	}
	counter := func(b []byte) []byte { return AppendCounterKey(b, r.Name) }
	waits := func(b []byte) []byte { return resp.AppendWord(b, KeyBegin, r.Name, WaitsEnd) }
	gate := func(b []byte) []byte {
		if c.gateAt = len(b); guarded {
			b = appendGate(b, e.Fingerprint)
		}
		return b
	}
	switch q.Op {
	case quorum.Acquire, quorum.Heal:
		if q.Downgrade {
			*c = *e.Downgrade(q.Lease)
			c.Question = q
			return
		}
		b := e.appendMark(c, waits(appendTombstoneKey(counter(begin(Admit, AdmitGuarded)), r)), guarded)
		b = resp.AppendNumber(resp.AppendWord(b, kindText(r.Kind)), uint64(max(r.Weight, 1)))
		b = e.appendProposal(resp.AppendMillis(appendValue(b, r), r.TTL))
		again := "0"
		if q.Again {
			again = "1"
		} else if e.KeyOf != nil { // in a cluster
			again = "2"
		}
		mode, exact := modeOf(q), q.Exact
		if q.Op == quorum.Heal {
			mode, exact = "h", true
		}
		b = resp.AppendWord(resp.AppendWord(b, mode), again)
		b = e.appendSlots(b, r, exact)
		b, flagAt := e.appendPlace(b, q, guarded)
		placeEnd := len(b) - len("\r\n")
		c.Bytes = gate(b)
		c.setPlace(flagAt, placeEnd)
		c.Repeats = q.Again
	case quorum.Extend:
		e.renewHolds(c, []store.Lease{q.Lease})
	case quorum.Confirm:
		b := e.appendMark(c, resp.AppendWord(counter(begin(ConfirmHold, ConfirmHold)), KeyBegin, r.Name, HeldEnd), false)
		c.Bytes = resp.AppendNumber(e.appendSlots(resp.AppendWord(b, r.Owner), r, true), q.Token)
		c.gateAt = len(c.Bytes)
	default: // quorum.Release
		b := e.appendMark(c, waits(appendTombstoneKey(begin(EndHold, EndHoldGuarded), r)), guarded)
		b = appendEnding(b, q)
		c.Bytes = gate(resp.AppendWord(e.appendProposal(b), toOf(q)))
	}
}

// renewHolds makes c renew leases of one lock that several can hold, with one weight, TTL and
// requirement.
func (e *Encoder) renewHolds(c *Command, leases []store.Lease) {
	r := leases[0]
	r.Name = e.keyFor(c, r.Name)
	script, guarded := RenewHold, e.guards(r)
	if guarded {
		script = RenewHoldGuarded
	}
	b := AppendCounterKey(resp.AppendWord(c.beginMany(script, len(leases)-1), r.Name), r.Name)
	b = resp.AppendWord(resp.AppendWord(b, KeyBegin, r.Name, HeldEnd), KeyBegin, r.Name, EndsEnd)
	b = resp.AppendMillis(e.appendMark(c, b, guarded), r.TTL)
	b = e.appendProposal(resp.AppendNumber(resp.AppendWord(b, kindText(r.Kind)), uint64(max(r.Weight, 1))))
	for _, l := range leases {
		b = e.appendSlots(resp.AppendWord(b, l.Owner), l, true)
	}
	if c.gateAt = len(b); guarded {
		b = resp.AppendWord(b, e.Fingerprint)
	}
	c.Bytes = b
}

// appendSlots appends which slots a lease wants, or has to have if exact is set; see
// calls/admit.lua.
func (e *Encoder) appendSlots(b []byte, r store.Lease, exact bool) []byte {
	switch {
	case !e.Several:
		return resp.AppendWord(b, "")
	case len(r.Slots) == 0:
		return resp.AppendWord(b, "-")
	case exact:
		return resp.AppendWord(b, "=", string(rule.SlotsOf(r.Slots...)))
	}
	return resp.AppendWord(b, string(rule.SlotsOf(r.Slots...)))
}

// change begins a call of a change script about the lock called name, with more keys after
// those of the lock.
func (e *Encoder) change(s *Script, name, what string, keys ...string) (*Command, []byte) {
	c := new(Command)
	name = e.keyFor(c, name)
	b := appendWholeKey(AppendCounterKey(resp.AppendWord(c.Begin(s), name), name), name)
	for _, key := range keys {
		b = resp.AppendWord(b, key)
	}
	return c, resp.AppendWord(b, what)
}

// Downgrade returns the command that makes the writer r a reader.
func (e *Encoder) Downgrade(r store.Lease) *Command {
	guarded, s, keys := e.guards(r), Downgrade, []string(nil)
	if guarded {
		s, keys = DowngradeGuarded, []string{MarkKey}
	}
	c, b := e.change(s, r.Name, "downgrade", keys...)
	b = e.appendProposal(resp.AppendMillis(resp.AppendWord(b, r.Owner), r.TTL))
	if c.gateAt = len(b); guarded {
		b = appendGate(b, e.Fingerprint)
	}
	c.Bytes = b
	return c
}

// Resize returns the command that changes the number of permits of a semaphore.
func (e *Encoder) Resize(name string, from, to store.Kind) *Command {
	c, b := e.change(Resize, name, "resize")
	c.Bytes = resp.AppendWord(resp.AppendWord(b, resizable(from)), resizable(to))
	return c
}

// resizable is kindText of a semaphore that may have a single permit.
func resizable(k store.Kind) string { return "s" + strconv.FormatInt(k.Normal().Limit, 10) }

// BreakHold returns the command that breaks a lease of a lock that several can hold.
func (e *Encoder) BreakHold(r store.BreakRequest) *Command {
	c, b := e.change(BreakHold, r.Name, "break")
	c.Bytes = e.appendBreak(b, r, r.Token)
	return c
}

// BreakPart returns the command that breaks what one of several servers has of such a lease.
// part is that, or nil if the server was seen without the lease. made is the attempt that
// made the grant elsewhere, and tombstone is how long late requests of it are refused.
func (e *Encoder) BreakPart(r store.BreakRequest, part *Held, made string, tombstone time.Duration) *Command {
	c, b := e.change(BreakPart, r.Name, "part", MarkKey)
	token := fence.Token(0)
	if part != nil {
		token, made = part.Token, part.Made
	}
	b = resp.AppendMillis(resp.AppendWord(e.appendBreak(b, r, token), made), tombstone)
	c.gateAt = len(b)
	c.Bytes = appendGate(b, e.Fingerprint)
	return c
}

// appendBreak appends what the change script needs to break a grant with that token.
func (e *Encoder) appendBreak(b []byte, r store.BreakRequest, token fence.Token) []byte {
	b = resp.AppendWord(resp.AppendWord(b, r.Owner), token.String())
	now := "0"
	if r.Now {
		now = "1"
	}
	b = e.appendProposal(resp.AppendWord(b, now))
	b = resp.AppendWord(b, r.Token.String(), " ", r.Owner, " ")
	return resp.AppendMillis(resp.AppendWord(b, r.Note()), store.KeepBroken)
}

// inUseAs is the outcome of a node where the lock is in use as another kind, or by the same
// owner with a smaller weight.
func inUseAs(kind, value string) store.NodeOutcome {
	return inUseBy(kind, DecodeValue(value))
}

// inUseBy is inUseAs with the holder.
func inUseBy(kind string, h store.Holder) store.NodeOutcome {
	inUse, _ := parseKind(kind)
	return store.NodeOutcome{Outcome: store.WrongType, Err: &store.KindError{InUse: inUse, Holder: h}}
}

// slotOf reads the slot of a grant, which only a lock that several can hold has.
func slotOf(said []resp.Value) int64 {
	if len(said) == 0 || said[0].Kind != ':' || said[0].Num < 0 {
		return 0
	}
	return said[0].Num
}

// slotsOf reads all slots of a grant, which a server adds if it is one of several.
func slotsOf(said []resp.Value) string {
	if len(said) < 2 || said[1].Kind != '$' {
		return ""
	}
	return string(said[1].Text)
}

// Changed reads the reply to a change.
func (r Reply) Changed() (c Change) {
	if r.Outcome != store.Granted {
		c.Said = store.NodeOutcome{Outcome: r.Outcome, Err: r.Err}
		return c
	}
	c.Said = store.NodeOutcome{Outcome: store.Refused, Err: resp.Unexpected(r.Value)}
	v := r.Value.List
	if len(v) == 0 || v[0].Kind != ':' {
		return c
	}
	switch {
	case v[0].Num == 0:
		c.Said = store.NodeOutcome{Outcome: store.Absent}
	case v[0].Num == 6 && len(v) >= 3:
		c.Said = inUseAs(string(v[1].Text), string(v[2].Text))
	case v[0].Num == 4 && len(v) >= 2:
		c.Said = OtherMembership(v[1])
	case v[0].Num == 5 && len(v) >= 2:
		c.Said = OtherVersion(v[1])
	case v[0].Num == 1:
		c.Said = store.NodeOutcome{Outcome: store.Granted}
		if len(v) == 2 {
			c.Left = time.Duration(min(max(v[1].Num, 0), mostMillis)) * time.Millisecond
		}
		if len(v) == 5 {
			token, _ := v[1].Number()
			c.Token, c.Slot = fence.Token(token), slotOf(v[4:])
		}
	}
	return c
}

// Change is what a node did to a lock while it was held.
type Change struct {
	// Said is Granted if it was done, Absent if the owner has no such lease, and WrongType
	// with a *store.KindError if the lock is in use as another kind.
	Said  store.NodeOutcome
	Token fence.Token   // of a downgrade
	Slot  int64         // of a downgrade
	Left  time.Duration // how long a broken lease can last
}

// decodePlace reads the value of a place in the queue: that of its holder to be, with what
// is wanted of a lock that several can hold before it; see readWish.lua.
func decodePlace(value string) store.Holder {
	if words := strings.SplitN(value, " ", 5); len(words) == 5 && words[0] == "" {
		kind, _, _ := strings.Cut(words[1], ":")
		if _, ok := parseKind(kind); ok {
			value = words[4]
		}
	}
	return DecodeValue(value)
}
