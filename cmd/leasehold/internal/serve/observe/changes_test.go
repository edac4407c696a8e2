package observe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// holders reads "a:30 b:10": owners and how many seconds are left of their leases. A "!" after
// an owner means that the lease was broken, "?" that it is undecided, and "~" that nobody renews it.
func holders(name, text string) []store.State {
	if text == "" {
		return nil
	}
	s := store.State{Name: name}
	for part := range strings.FieldsSeq(text) {
		owner, left, _ := strings.Cut(part, ":")
		seconds, _ := strconv.Atoi(left)
		h := store.Holding{Holder: store.Holder{Owner: strings.TrimRight(owner, "!?~"), Broken: strings.Contains(owner, "!"), Unrenewed: strings.Contains(owner, "~")}, Token: fence.Token(len(owner)), ExpiresIn: time.Duration(seconds) * time.Second}
		if left == "never" {
			h.ExpiresIn = -1
		}
		if strings.Contains(owner, "?") {
			s.Undecided = append(s.Undecided, h)
			continue
		}
		s.Held, s.Holders = true, append(s.Holders, h)
	}
	if s.Held {
		first := s.Holders[0]
		s.Holder, s.Token, s.ExpiresIn = first.Holder, first.Token, first.ExpiresIn
	}
	if len(s.Holders) > 1 {
		s.Kind = store.Semaphore(3)
	}
	return []store.State{s}
}

// Each story is what looks find, one every ten seconds, and what that means. "cut:" before a
// look says that it did not look at all locks, "seen B:" that Inspect says B was broken.
func TestChanges(t *testing.T) {
	for _, story := range []struct {
		name  string
		looks []string
		want  string
	}{
		{"what is held at first is no change", []string{"a:30", "a:25"}, ""},
		{"acquired", []string{"", "a:30"}, "1 acquired a"},
		{"released long before its end", []string{"a:30", "a:25", ""}, "2 released a"},
		{"handed over", []string{"a:30", "a:25", "b:30"}, "2 handed-over b from a"},
		{"lost: it ran down, and then it was gone", []string{"a:30", "a:20", "a:10", ""}, "3 lost a expired"},
		{"lost, and the next one has it", []string{"a:30", "a:20", "a:10", "b:30"}, "3 lost a expired, 3 acquired b"},
		{"renewed until it was released", []string{"a:30", "a:21", "a:29", "a:22", ""}, "4 released a"},
		{"a TTL shorter than the pause between two looks", []string{"a:5", "a:4", ""}, "2 over a"},
		{"seen once only", []string{"z:3", "z:2 a:6", "z:3"}, "1 acquired a, 2 over a"},
		{"counted on its TTL", []string{"a~:30", "a~:20", "a~:10", ""}, "3 over a"},
		{"never ends by itself", []string{"a:never", "z:1", "z:2", "z:1"}, "1 handed-over z from a"},
		{"the store does not show what is left", []string{"a:30", "a:30", ""}, "2 over a"},
		{"the same, handed over", []string{"a:30", "a:30", "b:30"}, "2 handed-over b from a"},
		{"broken, and over later", []string{"a:30", "a!:25", "a!:15", "b:30"}, "1 broken a, 3 lost a broken, 3 acquired b"},
		{"broken and over at once", []string{"a:30", "a:25", "seen a: b:30"}, "2 broken a by op, 2 lost a broken by op, 2 acquired b"},
		{"an earlier lease was broken", []string{"a:30", "a:25", "seen x: b:30"}, "2 handed-over b from a"},
		{"broken before the first look", []string{"a!:30", "a!:25", ""}, "2 lost a broken"},
		{"undecided is not gone", []string{"a:30", "a?:25", "a:30"}, ""},
		{"undecided is not acquired", []string{"", "a?:30", "a?:20", ""}, ""},
		{"undecided, and then held", []string{"", "a?:30", "a:30"}, "2 acquired a"},
		{"holders come and go", []string{"a:30 b:30", "a:29 c:20", "c:25 d:30"}, "1 released b, 1 acquired c, 2 released a, 2 acquired d"},
		{"a look that was cut says nothing of what it did not find", []string{"a:30", "cut: ", "a:25", ""}, "3 released a"},
		{"a lease that was not found for long is forgotten", []string{"a:4", "cut: ", "", "a:4"}, "3 acquired a"},
		{"nothing is acquired before all locks were seen", []string{"cut: ", "a:30", ""}, "2 over a"},
	} {
		t.Run(story.name, func(t *testing.T) {
			var c changes
			var got []string
			at := time.Unix(1764000000, 0)
			for i, text := range story.looks {
				l := look{began: at, ended: at.Add(10 * time.Millisecond), whole: true, broken: map[string]*store.Broken{}}
				if rest, cut := strings.CutPrefix(text, "cut: "); cut {
					l.whole, text = false, rest
				}
				if rest, seen := strings.CutPrefix(text, "seen "); seen {
					owner, states, _ := strings.Cut(rest, ": ")
					l.broken["lock"] = &store.Broken{Owner: owner, Token: 1, By: "op"}
					text = states
				}
				l.states = holders("lock", text)
				for _, name := range c.ending(l.states) {
					if name != "lock" {
						t.Errorf("look %d: %q is said to be ending", i, name)
					}
				}
				for _, e := range c.step(l) {
					s := fmt.Sprintf("%d %s %s", i, e.Kind, e.Lease.Holder.Owner)
					if e.From != nil {
						s += " from " + e.From.Holder.Owner
					}
					if e.Cause != "" {
						s += " " + e.Cause
					}
					if e.Broken != nil {
						s += " by " + e.Broken.By
					}
					got = append(got, s)
				}
				at = at.Add(10 * time.Second)
			}
			if s := strings.Join(got, ", "); s != story.want {
				t.Errorf("looks %q:\ngot  %s\nwant %s", story.looks, s, story.want)
			}
		})
	}
}

// Events have rising numbers, the time of their look and that of the look before.
func TestEventsAreNumbered(t *testing.T) {
	var c changes
	at := time.Unix(1764000000, 0)
	var ids []uint64
	for i, text := range []string{"", "a:30", "b:30", ""} {
		for _, e := range c.step(look{began: at, ended: at, whole: true, states: holders("lock", text)}) {
			ids = append(ids, e.ID)
			if !e.Time.Equal(at) || !e.After.Equal(at.Add(-time.Second)) {
				t.Errorf("look %d: event %d between %v and %v", i, e.ID, e.After, e.Time)
			}
		}
		at = at.Add(time.Second)
	}
	if !slices.Equal(ids, []uint64{1, 2, 3}) {
		t.Errorf("events %v", ids)
	}
}

// A machine that slept between two looks does not take a lease that ran out for a released one.
func TestSuspendedMachine(t *testing.T) {
	var c changes
	at := time.Now()
	c.step(look{began: at, ended: at, whole: true, states: holders("lock", "a:30")})
	c.step(look{began: at, ended: at, whole: true, states: holders("lock", "a:29")})
	asleep := at.Round(0).Add(time.Hour) // the monotonic clock of Go stood still
	got := c.step(look{began: asleep, ended: asleep, whole: true})
	if len(got) != 1 || got[0].Kind != Over {
		t.Errorf("got %+v, want that the lease is over", got)
	}
}
