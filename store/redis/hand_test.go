package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/majority"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// ask has the server do what is asked, which must not fail.
func (n *scripted) ask(t *testing.T, questions ...majority.Question) (all []majority.Answer) {
	t.Helper()
	var commands []*command
	for _, q := range questions {
		n.s.wall, n.s.channel = time.Now, channelBegin+"nobody"
		c := n.s.encode(q, nil).(*command)
		commands = append(commands, n.byText(c))
	}
	replies, err := n.run(commands...)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range replies {
		all = append(all, hearing(v).answer(acquireScript))
	}
	return all
}

// text is what the server says to one command.
func (n *scripted) text(t *testing.T, words ...string) string {
	t.Helper()
	said, err := n.run(newCommand(words...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(said[0].String(), `"`)
}

func lining(name string, require store.Class) store.Request {
	return store.Request{Name: name, Owner: store.NewOwnerAt(time.Now()), TTL: 30 * time.Second, Require: require}
}

// A server that grants nothing hands nothing on either; the line stays until it
// grants again.
func TestQuarantineHandsNothingOn(t *testing.T) {
	for name, c := range map[string]struct {
		mark string
		held bool
	}{
		"open":       {"0000000000000000 - - declared -", true},
		"quarantine": {"9999999999999999 - - restarted -", false},
		"other list": {"0000000000000000 0123456789ab - declared a,b,c", false},
		"emptied":    {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			n := onRedis(t)
			n.s.lists.print = "ba9876543210"
			n.text(t, "SET", markKey, "0000000000000000 - - declared -")
			held, next := lining("stock", store.CrashSafe), lining("stock", store.CrashSafe)
			n.ask(t, majority.Question{Op: quorum.Acquire, Lease: held}, majority.Question{Op: quorum.Acquire, Lease: next, Waits: true})
			if n.text(t, "DEL", markKey); c.mark != "" {
				n.text(t, "SET", markKey, c.mark)
			}
			line := n.text(t, "GET", "{stock}:line")
			n.ask(t, majority.Question{Op: quorum.Release, Lease: held})
			if got := n.text(t, "GET", "stock") == next.Owner; got != c.held {
				t.Errorf("handed on: %v", got)
			}
			if left := n.text(t, "GET", "{stock}:line"); !c.held && left != line {
				t.Errorf("the line was %s and is %s", line, left)
			}
		})
	}
}

// Who must not be granted the lock without a look at the mark is not handed it by
// somebody who does not look.
func TestGuardedPlaceIsNotHandedUnseen(t *testing.T) {
	n := onRedis(t)
	n.s.nodes = make([]*node, 1)
	held, next := lining("stock", 0), lining("stock", store.CrashSafe)
	n.ask(t, majority.Question{Op: quorum.Acquire, Lease: held}, majority.Question{Op: quorum.Acquire, Lease: next, Waits: true}, majority.Question{Op: quorum.Release, Lease: held})
	if said := n.text(t, "GET", "stock"); said != "nil" {
		t.Errorf("it is %s's", said)
	}
	if said := n.text(t, "EXISTS", "{stock}:line"); said != "0" {
		t.Error("who was told that the lock is free has a place still")
	}
}

// Places of the dead do not make the line longer and longer while the lock is held.
func TestDeadPlacesAreCleared(t *testing.T) {
	n := onRedis(t)
	held := lining("stock", 0)
	n.ask(t, majority.Question{Op: quorum.Acquire, Lease: held}, majority.Question{Op: quorum.Acquire, Lease: lining("stock", 0), Waits: true})
	for range 100 {
		var some []majority.Question
		for range 30 {
			r := lining("stock", 0)
			r.TTL = time.Millisecond
			some = append(some, majority.Question{Op: quorum.Acquire, Lease: r, Waits: true})
		}
		n.ask(t, some...)
	}
	if entries := strings.Count(n.text(t, "GET", "{stock}:line"), `\n`); entries > 600 {
		t.Errorf("%d entries of 3000 that are dead", entries)
	}
	n.ask(t, majority.Question{Op: quorum.Release, Lease: held})
}

// What is no line is nobody's place: locks work, and who wants to wait is told.
func TestWhatIsNoLine(t *testing.T) {
	for name, words := range map[string][]string{
		"a hash": {"HSET", "{stock}:line", "a", "b"}, "other text": {"SET", "{stock}:line", "what is this\n0 x"}, "for ever": {"SET", "{stock}:line", "1234567890123456 ann\n"},
	} {
		t.Run(name, func(t *testing.T) {
			n := onRedis(t)
			n.text(t, words...)
			held, next := lining("stock", 0), lining("stock", 0)
			for i, a := range n.ask(t, majority.Question{Op: quorum.Acquire, Lease: held, Waits: true}, majority.Question{Op: quorum.Acquire, Lease: held, Waits: true, Again: true}) {
				if a.Kind != quorum.Yes {
					t.Errorf("%d: %+v", i, a)
				}
			}
			if name == "a hash" {
				_, err := n.run(n.byText(n.s.encode(majority.Question{Op: quorum.Acquire, Lease: next, Waits: true}, nil).(*command)))
				if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
					t.Errorf("waiting: %v", err)
				}
			} else if a := n.ask(t, majority.Question{Op: quorum.Acquire, Lease: next, Waits: true})[0]; a.Position == 0 {
				t.Errorf("waiting: %+v", a)
			}
			said, err := n.run(n.byText(n.s.encode(majority.Question{Op: quorum.Release, Lease: held}, nil).(*command)))
			if err != nil || fmt.Sprint(said) != "[[1]]" {
				t.Errorf("release: %v, %v", said, err)
			}
			if got := n.text(t, "GET", "stock") == next.Owner; got != (name != "a hash") {
				t.Errorf("handed on: %v", got)
			}
		})
	}
}
