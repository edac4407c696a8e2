package script

import (
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// BrokenEnd is the end of the key with the note about the lease that was broken last. Its
// value is the token, the owner and the note, with spaces between them.
const BrokenEnd = "}:broken"

// Break returns the command that breaks the lease of r. The server was seen with token, and tombstone is how long late requests of it are refused.
func (e *Encoder) Break(r store.BreakRequest, token fence.Token, tombstone time.Duration) *Command {
	c := new(Command)
	name := e.keyFor(c, r.Name)
	b := AppendCounterKey(resp.AppendWord(c.Begin(Break), name), name)
	b = appendTombstoneKey(b, store.Lease{Name: name, Owner: r.Owner})
	b = resp.AppendWord(b, KeyBegin, name, BrokenEnd)
	b = resp.AppendNumber(resp.AppendWord(b, r.Owner), uint64(token))
	b = resp.AppendMillis(b, tombstone)
	b = resp.AppendWord(b, r.Token.String(), " ", r.Owner, " ")
	c.Bytes = resp.AppendMillis(resp.AppendWord(b, r.Note()), tombstone+store.KeepBroken)
	return c
}

// PublishBreak returns the command that publishes that a lease of r.Owner was broken. In a
// cluster the server that has the lock passes it on to all others.
func (e *Encoder) PublishBreak(r store.BreakRequest) *Command {
	c := NewCommand("PUBLISH", BreakChannel, r.Owner)
	e.keyFor(c, r.Name)
	return c
}

// Breakage is what a script that breaks a lease did on one node.
type Breakage uint8

// What such a script can answer.
const (
	NotBroken   Breakage = iota // it gave no answer
	NothingHeld                 // the owner does not have the lock here
	LeaseBroken
	LaterToken // the owner has the lock with a larger token, or in another lease
)

// Broke reads the reply to Break or BreakPart.
func (r Reply) Broke() Breakage {
	if said := r.Value.List; r.Outcome == store.Granted && len(said) > 0 && said[0].Kind == ':' {
		switch said[0].Num {
		case 0:
			return NothingHeld
		case 1:
			return LeaseBroken
		case 2:
			return LaterToken
		}
	}
	return NotBroken
}

// Left returns how long the lease lasts on the node that broke it.
func (r Reply) Left() time.Duration {
	said := r.Value.List
	if r.Broke() != LeaseBroken || len(said) < 2 {
		return 0
	}
	return time.Duration(min(max(said[1].Num, 0), mostMillis)) * time.Millisecond
}

// Unbroken returns the description of the holder that the reply to Break marks as broken. A
// release that has it ends the lease, whatever text it is.
func (r Reply) Unbroken() string {
	said := r.Value.List
	if len(said) < 3 {
		return ""
	}
	_, meta, _ := strings.Cut(string(said[2].Text), " ")
	if rest, found := strings.CutPrefix(meta, `{"broken":true,`); found {
		return "{" + rest
	}
	return ""
}

// Note returns what the reply of the inspect script says about the lease that was broken
// last, or nil.
func (r Reply) Note() *store.Broken {
	v := r.Value.List
	if r.Outcome != store.Granted || len(v) != freeWords && len(v) != heldWords || v[len(v)-1].Kind != '$' {
		return nil
	}
	words := strings.SplitN(string(v[len(v)-1].Text), " ", 3)
	if len(words) != 3 {
		return nil
	}
	token, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		return nil
	}
	return store.DecodeBroken(words[1], fence.Token(token), words[2])
}
