package sim

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// history records all that happens, in order. It always has a digest, and its text only on
// request. Owners, which are drawn at random, are numbered in the order of their appearance.
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

// number returns the number of an owner.
func (h *history) number(name string) int {
	n, ok := h.ids[name]
	if !ok {
		n = len(h.names)
		h.ids[name] = n
		h.names = append(h.names, name)
	}
	return n
}

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
	factSends = iota + 1
	factApplies
	factReceives
	factNote
	factEnd
	factSay
)

// sends: a client writes.
func (h *history) sends(s *stream, g segment) {
	h.mix(factSends, uint64(s.l.c.index), uint64(s.l.n.index), uint64(len(g.commands)))
	if !h.keep {
		return
	}
	where := fmt.Sprintf("c%d", s.l.c.index+1)
	for _, i := range g.order {
		h.write(where, "-> n%d  %s", s.l.n.index+1, h.w.names.read(s.l.n.server, g.commands[i]))
	}
	if g.fin {
		h.write(where, "-> n%d  closes the connection", s.l.n.index+1)
	}
}

// receives: the client can read.
func (h *history) receives(s *stream, n int) {
	h.mix(factReceives, uint64(s.l.c.index), uint64(s.l.n.index))
	if h.keep {
		h.write(fmt.Sprintf("c%d", s.l.c.index+1), "<- n%d  %d bytes", s.l.n.index+1, n)
	}
}

// applies: a node executes a command.
func (h *history) applies(n *node, o op, said []byte, replayed bool) {
	h.mix(factApplies, uint64(n.index), uint64(o.lock+1), uint64(len(said)))
	h.mixText(o.name)
	for _, k := range o.owners {
		h.mix(uint64(k))
	}
	if len(said) > 0 {
		h.mix(uint64(said[0]), uint64(firstNumber(said)))
	}
	if h.keep {
		again := map[bool]string{true: " (replayed)"}[replayed]
		h.write(fmt.Sprintf("n%d", n.index+1), "%s: %s%s", o, h.shows(said), again)
	}
}

// channelName is the name of a store's channel, which is random.
var channelName = regexp.MustCompile("(leasehold:to:)[A-Z2-7]{26}")

// shows returns a server's reply, with owners by their numbers.
func (h *history) shows(said []byte) string {
	const most = 300
	text := channelName.ReplaceAllString(strings.ReplaceAll(string(said), "\r\n", " "), "$1*")
	for i, name := range h.names {
		if i > 0 {
			text = strings.ReplaceAll(text, name, fmt.Sprintf("o%d", i))
		}
	}
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

var noteNames = [...]string{"asks for a lock", "holds the lock", "gave up", "writes to the resource", "extended", "begins to release", "released", "WRONG"}

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

// class is the meaning of an error, without the parts that differ between two runs.
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

// String describes a fault for people.
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
