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
	time   *timeline
	keep   bool
	lines  []string
	digest uint64
	ids    map[string]int
	names  []string
}

func (h *history) init(t *timeline) {
	h.time = t
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
	h.digest = (h.digest ^ uint64(h.time.now())) * prime
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
	h.lines = append(h.lines, fmt.Sprintf("%14.6fms  %-6s  ", float64(h.time.now())/1e6, where)+fmt.Sprintf(format, args...))
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

// applies: a node executes a command.
func (h *history) applies(node int, o op, said []byte, replayed bool) {
	h.mix(factApplies, uint64(node), uint64(o.lock+1), uint64(len(said)))
	h.mixText(o.name)
	for _, k := range o.owners {
		h.mix(uint64(k))
	}
	if len(said) > 0 {
		h.mix(uint64(said[0]), uint64(firstNumber(said)))
	}
	if h.keep {
		again := map[bool]string{true: " (replayed)"}[replayed]
		h.write(fmt.Sprintf("n%d", node+1), "%s: %s%s", o, h.shows(said), again)
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

// client: something happens to a client, for so long if d is not zero.
func (h *history) client(what string, client int, d time.Duration) {
	h.say("c%d %s %s", client+1, what, orNothing(d))
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
