package script

import (
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// The changes of a lock that several can hold while it is held. They are rare, and so not among
// the scripts that every connection loads.
var (
	Downgrade = load("change", 2, 4)
	Resize    = load("change", 2, 3)
	BreakHold = load("change", 2, 8)
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
		return AppendCounterKey(resp.AppendWord(c.Begin(plain), r.Name), r.Name)
	}
	gate := func(b []byte) []byte {
		if c.gateAt = len(b); guarded {
			b = appendGate(b, e.Fingerprint)
		}
		return b
	}
	switch q.Op {
	case quorum.Acquire:
		b := e.appendMark(c, appendTombKey(begin(Admit, AdmitGuarded), r), guarded)
		b = resp.AppendNumber(resp.AppendWord(b, kindText(r.Kind)), uint64(max(r.Weight, 1)))
		b = e.appendProposal(resp.AppendMillis(appendValue(b, r), r.TTL))
		spare, again := q.Spare, "0"
		if r.SharesToken() {
			spare = 0
		}
		if q.Again {
			again = "1"
		}
		b = resp.AppendWord(resp.AppendWord(resp.AppendNumber(b, uint64(spare)), modeOf(q)), again)
		b, tells := e.appendPlace(b, q, guarded)
		if c.Bytes = gate(b); tells > 0 {
			c.NoPushAt = len(c.Bytes) - tells
		}
		c.Repeats = q.Again
	case quorum.Extend:
		b := e.appendMark(c, begin(RenewHold, RenewHoldGuarded), guarded)
		b = resp.AppendMillis(resp.AppendWord(b, r.Owner), r.TTL)
		if c.gateAt = len(b); guarded {
			b = resp.AppendWord(b, e.Fingerprint)
		}
		c.Bytes = b
	default: // quorum.Release; the store asks no node to confirm or to heal such a lock
		life, always, undo := time.Duration(0), "0", "0"
		if q.Tomb {
			life = r.TTL
		}
		if q.Renewed {
			always = "1"
		}
		if q.Undo && r.Attempt != "" {
			undo = "1"
		}
		b := e.appendMark(c, appendTombKey(begin(EndHold, EndHoldGuarded), r), guarded)
		b = resp.AppendWord(resp.AppendWord(resp.AppendMillis(b, life), always), undo)
		c.Bytes = gate(e.appendProposal(b))
	}
}

// change begins a call of a change script about the lock called name.
func (e *Encoder) change(s *Script, name, what string) (*Command, []byte) {
	c := new(Command)
	if e.KeyOf != nil {
		var slot int
		name, slot = e.KeyOf(name)
		c.Slot = slot + 1
	}
	return c, resp.AppendWord(AppendCounterKey(resp.AppendWord(c.Begin(s), name), name), what)
}

// Downgrade returns the command that makes the writer r a reader.
func (e *Encoder) Downgrade(r store.Lease) *Command {
	c, b := e.change(Downgrade, r.Name, "downgrade")
	c.Bytes = e.appendProposal(resp.AppendMillis(resp.AppendWord(b, r.Owner), r.TTL))
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
	b = resp.AppendWord(resp.AppendWord(b, r.Owner), r.Token.String())
	now := "0"
	if r.Now {
		now = "1"
	}
	b = e.appendProposal(resp.AppendWord(b, now))
	b = resp.AppendWord(b, r.Token.String(), " ", r.Owner, " ")
	c.Bytes = resp.AppendMillis(resp.AppendWord(b, r.Note()), store.KeepBroken)
	return c
}

// inUseAs is the outcome of a node where the lock is in use as another kind, or by the same
// owner with a smaller weight.
func inUseAs(kind string, h store.Holder) store.NodeOutcome {
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

// Changed reads the reply to a change.
func (a Reply) Changed() (c Change) {
	if a.Outcome != store.Granted {
		c.Said = store.NodeOutcome{Outcome: a.Outcome, Err: a.Err}
		return c
	}
	c.Said = store.NodeOutcome{Outcome: store.Refused, Err: resp.Unexpected(a.Value)}
	v := a.Value.List
	if len(v) == 0 || v[0].Kind != ':' {
		return c
	}
	switch {
	case v[0].Num == 0:
		c.Said = store.NodeOutcome{Outcome: store.Absent}
	case v[0].Num == 6 && len(v) >= 3:
		c.Said = inUseAs(string(v[1].Text), DecodeValue(string(v[2].Text)))
	case v[0].Num == 1:
		c.Said = store.NodeOutcome{Outcome: store.Granted}
		if len(v) == 2 {
			c.Left = time.Duration(min(max(v[1].Num, 0), mostMillis)) * time.Millisecond
		}
		if len(v) == 6 {
			token, _ := v[1].Number()
			c.Token, c.Slot = fence.Token(token), slotOf(v[5:])
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
	if words := strings.SplitN(value, " ", 6); len(words) == 6 && words[0] == "" {
		if _, ok := parseKind(words[1]); ok {
			value = words[5]
		}
	}
	return DecodeValue(value)
}
