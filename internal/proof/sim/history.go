package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// history is all that happened, in order. Its digest is worked out always, its
// text only when somebody wants to read it. Owners, which are drawn at random,
// are numbered in the order of their appearance.
type history struct {
	w      *world
	keep   bool
	lines  []string
	digest uint64
	ids    map[string]int
	names  []string
}

func (h *history) init(w *world) {
	h.w = w
	h.digest = 14695981039346656037
	h.ids = map[string]int{}
	h.names = []string{""}
}

// number is the number of an owner.
func (h *history) number(name string) int {
	n, ok := h.ids[name]
	if !ok {
		n = len(h.names)
		h.ids[name] = n
		h.names = append(h.names, name)
	}
	return n
}

func (h *history) owner(n int) string { return h.names[n] }

// mix takes a fact into the digest.
func (h *history) mix(facts ...uint64) {
	const prime = 1099511628211 // FNV-1a, a word at a time
	h.digest = (h.digest ^ uint64(h.w.now())) * prime
	for _, f := range facts {
		h.digest = (h.digest ^ f) * prime
		h.digest ^= h.digest >> 29
	}
}

func (h *history) mixText(s string) {
	for i := range len(s) {
		h.mix(uint64(s[i]))
	}
}

// write adds a line.
func (h *history) write(where, format string, args ...any) {
	h.lines = append(h.lines, fmt.Sprintf("%14.6fms  %-6s  ", float64(h.w.now())/1e6, where)+fmt.Sprintf(format, args...))
}

// The kinds of fact in the digest.
const (
	factSend = iota + 1
	factApply
	factAnswer
	factNote
	factEnd
	factRefuse
	factSay
	factTold
	factHears
)

func (h *history) send(k *call, refused bool) {
	q := k.q
	h.mix(factSend, uint64(k.l.c.index), uint64(k.l.n.index), uint64(q.Op), uint64(q.owner), q.Token, q.propose)
	if h.keep {
		h.write(fmt.Sprintf("c%d.w%d", k.l.c.index+1, q.worker), "-> n%d  %s%s", k.l.n.index+1, q, map[bool]string{true: ": no room in the line"}[refused])
	}
}

func (q *question) String() string {
	s := fmt.Sprintf("%s o%d of lock %d", q.Op, q.owner, q.lock+1)
	switch q.Op {
	case quorum.Acquire, quorum.Extend:
		s += fmt.Sprintf(" for %v", q.Lease.TTL)
	case quorum.Confirm:
		s += fmt.Sprintf(" token %d", q.Token)
	}
	if q.GivesWay {
		s += fmt.Sprintf(", to give way to o%d", q.to)
	}
	if q.Waits {
		s += ", or wait"
	}
	if q.Again {
		s += ", again"
	}
	if q.IfHeld {
		s += ", only to wait behind a holder"
	} else if q.QueueOnly {
		s += ", only to wait"
	}
	if q.Tomb {
		s += ", for ever"
	}
	return s
}

var verdicts = [...]string{"done", "taken", "buried", "shut"}

// told is what a node says unasked.
func (h *history) told(n *node, t modelnode.Told[int]) {
	h.mix(factTold, uint64(n.index), uint64(t.Owner), t.Token, t.Stamp)
	if h.keep {
		h.write(fmt.Sprintf("n%d", n.index+1), "hands it on: %s", tellings(t))
	}
}

// hears is that it arrives.
func (h *history) hears(l *link, t modelnode.Told[int]) {
	h.mix(factHears, uint64(l.c.index), uint64(l.n.index), uint64(t.Owner), t.Token)
	if h.keep {
		h.write(fmt.Sprintf("c%d", l.c.index+1), "<~ n%d  %s", l.n.index+1, tellings(t))
	}
}

func tellings(t modelnode.Told[int]) string {
	if !t.Granted {
		return fmt.Sprintf("free, for o%d to try", t.Owner)
	}
	return fmt.Sprintf("o%d has it now, token %d", t.Owner, t.Token)
}

func (h *history) apply(k *call, a modelnode.Answer[int]) {
	q := k.q
	h.mix(factApply, uint64(k.l.n.index), uint64(q.Op), uint64(q.owner), uint64(a.Verdict), a.Token, uint64(a.Holder), uint64(a.ExpiresIn))
	if !h.keep {
		return
	}
	s := verdicts[a.Verdict]
	switch {
	case a.Token != 0:
		s += fmt.Sprintf(", token %d", a.Token)
	case a.Holder != 0:
		if s += fmt.Sprintf(" by o%d for another %v", a.Holder, a.ExpiresIn); a.Position > 0 {
			s += fmt.Sprintf(", place %d", a.Position)
		}
	case a.Verdict == modelnode.Taken:
		s = "not there"
	}
	if k.replayed {
		s += " (replayed)"
	}
	h.write(fmt.Sprintf("n%d", k.l.n.index+1), "%s: %s", q, s)
}

func (h *history) refuses(k *call) {
	h.mix(factRefuse, uint64(k.l.n.index), uint64(k.q.Op), uint64(k.q.owner))
	if h.keep {
		h.write(fmt.Sprintf("n%d", k.l.n.index+1), "%s: an error", k.q)
	}
}

var kinds = [...]string{"yes", "no", "absent", "unsent", "unknown"}

func (h *history) answer(k *call, a driver.Reply) {
	h.mix(factAnswer, uint64(k.l.c.index), uint64(k.l.n.index), uint64(k.q.Op), uint64(k.q.owner), uint64(a.Kind), a.Token)
	if h.keep {
		h.write(fmt.Sprintf("c%d.w%d", k.l.c.index+1, k.q.worker), "<- n%d  %s: %s", k.l.n.index+1, k.q, kinds[a.Kind])
	}
}

var noteNames = [...]string{"holds the lock", "gave up", "writes to the resource", "extended", "begins to release", "released", "WRONG"}

func (h *history) note(k *worker, n note) {
	cl := class(n.err)
	h.mix(factNote, uint64(k.c.index), uint64(k.index), uint64(n.kind))
	h.mixText(cl)
	if n.claim != nil {
		h.mix(uint64(h.number(n.claim.lease.Owner())), uint64(n.claim.lease.Token()))
	}
	if !h.keep {
		return
	}
	s := noteNames[n.kind]
	if n.claim != nil {
		s += fmt.Sprintf(": o%d, lock %d, token %d", h.number(n.claim.lease.Owner()), n.claim.lock+1, n.claim.lease.Token())
	}
	if n.err != nil {
		s += ": " + cl
	}
	h.write(fmt.Sprintf("c%d.w%d", k.c.index+1, k.index), "%s %s", s, n.text)
}

func (h *history) ends(c *claim, err error) {
	h.mix(factEnd, uint64(c.owner))
	h.mixText(class(err))
	if h.keep {
		h.write(fmt.Sprintf("c%d.w%d", c.k.c.index+1, c.k.index), "lease over: o%d, lock %d, token %d: %s", c.owner, c.lock+1, c.lease.Token(), class(err))
	}
}

func (h *history) fault(f Fault) {
	h.mix(factSay)
	h.mixText(string(f.Kind))
	if h.keep {
		h.write("", "FAULT %s", f)
	}
}

func (h *history) node(what string, n *node, d time.Duration) {
	h.say("n%d %s %s", n.index+1, what, orNothing(d))
}

func (h *history) client(what string, c *client, d time.Duration) {
	h.say("c%d %s %s", c.index+1, what, orNothing(d))
}

func orNothing(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func (h *history) say(format string, args ...any) {
	s := strings.TrimSpace(fmt.Sprintf(format, args...))
	h.mix(factSay)
	h.mixText(s)
	if h.keep {
		h.write("", "%s", s)
	}
}

// class is what an error means, without what differs between two runs.
func class(err error) string {
	if err == nil {
		return "fine"
	}
	var words []string
	for _, c := range []struct {
		is   error
		word string
	}{
		{leasehold.ErrLost, "lost"}, {leasehold.ErrReleased, "released"}, {leasehold.ErrBusy, "busy"},
		{leasehold.ErrQuorum, "no quorum"}, {leasehold.ErrAmbiguous, "outcome unknown"}, {leasehold.ErrInvalid, "invalid"},
		{store.ErrNotHeld, "not held"}, {context.Canceled, "cancelled"}, {context.DeadlineExceeded, "out of time"},
	} {
		if errors.Is(err, c.is) {
			words = append(words, c.word)
		}
	}
	if words == nil {
		return "unexpected"
	}
	return strings.Join(words, ", ")
}

// String is a fault as people read it.
func (f Fault) String() string {
	who := ""
	if f.Client > 0 {
		who += fmt.Sprintf(" c%d", f.Client)
	}
	if f.Node > 0 {
		who += fmt.Sprintf(" n%d", f.Node)
	}
	if who == "" {
		who = " everybody"
	}
	return fmt.Sprintf("%s%s at %v for %v, size %d", f.Kind, who, f.at(), f.last(), f.Size)
}
