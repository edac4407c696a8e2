package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// words decodes a command as a server does.
func words(t *testing.T, b []byte) []string {
	t.Helper()
	r := resp.NewReader(strings.NewReader(string(b)))
	v, err := r.Next()
	if err != nil || r.In.Buffered() > 0 {
		t.Fatalf("%q is not one command: %v, %d bytes left", b, err, r.In.Buffered())
	}
	var w []string
	for _, e := range v.List {
		w = append(w, string(e.Text))
	}
	return w
}

// Every question is encoded as a whole command, whose script gets the number of keys and
// arguments that it declares, whatever command used the memory before.
func TestCommandsAreWhole(t *testing.T) {
	s := bareStore(config.Config{})
	requests := []store.Lease{
		{Name: "a", Owner: "o", TTL: time.Millisecond},
		{Name: strings.Repeat("n\r\n", 300), Owner: strings.Repeat("o", 200), Meta: `{"host":"h"}`, TTL: 1500 * time.Microsecond},
	}
	var c *script.Command
	for _, r := range requests {
		for op := quorum.Acquire; op <= quorum.Heal; op++ {
			for _, tombstone := range []bool{false, true} {
				c = s.Encode(driver.Question{Op: op, Lease: r, Token: 1790000000123456, Tombstone: tombstone}, c)
				byHash, byText := words(t, c.Bytes), words(t, c.ByText(nil))
				if len(byHash) != 3+c.Script.Keys+c.Script.Args || byHash[0] != "EVALSHA" || byHash[2] != fmt.Sprint(c.Script.Keys) {
					t.Errorf("%v: %q, want EVALSHA with %d keys and %d arguments", op, byHash, c.Script.Keys, c.Script.Args)
				}
				if byHash[3] != r.Name || !strings.Contains(strings.Join(byHash, "|")+"|", "|"+r.Owner+" "+cmp.Or(r.Meta, script.NoMeta)+"|") {
					t.Errorf("%v: %q names neither lock nor value", op, byHash)
				}
				if byText[0] != "EVAL" || byText[1] != c.Script.Text() || strings.Join(byText[2:], "|") != strings.Join(byHash[2:], "|") {
					t.Errorf("%v: by text %q, by hash %q", op, byText, byHash)
				}
			}
		}
	}
	if w := words(t, script.NewCommand("SCAN", "0", "").Bytes); len(w) != 3 || w[0] != "SCAN" || w[2] != "" {
		t.Errorf("SCAN is encoded as %q, want three words", w)
	}
}

// A command that is sent over a connection without pushes has the no-push flag, by hash
// and by text. For all other connections it stays as it was encoded.
func TestNoPushFlagIsSet(t *testing.T) {
	s := bareStore(config.Config{})
	r := store.Lease{Name: "a", Owner: store.NewOwnerAt(time.UnixMicro(1790000000123456)), Meta: "m", TTL: time.Second}
	for flags, require := range map[string]store.Class{"-": 0, "g": store.CrashSafe} {
		r.Require = require
		waits := driver.Question{Op: quorum.Acquire, Lease: r, Waits: true, Again: true, IfHeld: true, Stamp: 7}
		c := s.Encode(waits, nil)
		returns := s.Encode(driver.Question{Op: quorum.Release, Lease: r, Next: &waits}, nil)
		canPush, noPush := &Session{Node: &Node{}, canPush: true}, &Session{Node: &Node{}}
		for _, text := range []bool{false, true} {
			for c, at := range map[*script.Command]int{c: 3 + c.Script.Keys, returns: 3 + returns.Script.Keys + 9} {
				encode := func(w *Session) []string {
					begin := []byte("+what was before\r\n")
					if text {
						return words(t, w.setPushFlagLocked(c, c.ByText(begin))[len(begin):])
					}
					return words(t, w.setPushFlagLocked(c, append(begin, c.Bytes...))[len(begin):])
				}
				got, not := encode(canPush), encode(noPush)
				before := "" // what the argument begins with
				if c.Script == script.Acquire || c.Script == script.AcquireGuarded {
					before = got[at][:len("a1000 12 ")]
				}
				if want := "01790000000123456 7 m " + flags + " leasehold:to:x"; got[at] != before+want || not[at] != before+"1"+want[1:] {
					t.Errorf("%q, and without pushes %q, want %q with another first digit", got[at], not[at], want)
				}
				if not[at] = got[at]; !slices.Equal(got, not) {
					t.Errorf("%q, and without pushes %q, want no other difference", got, not)
				}
			}
		}
		other := s.Encode(driver.Question{Op: quorum.Acquire, Lease: r}, c)
		if before := string(other.Bytes); string(noPush.setPushFlagLocked(other, other.Bytes)) != before {
			t.Error("a command that does not wait has the no-push flag")
		}
	}
}

// A command that can grant names, by hash and by text, the run of the server that the
// connection leads to, and whether the client counts a quarantine.
func TestGateNamesTheRun(t *testing.T) {
	s := bareStore(config.Config{Clock: clock.System()})
	s.Size, s.Membership.Fingerprint = 3, "0123456789ab"
	r := store.Lease{Name: "a", Owner: "o", Meta: "m", TTL: time.Second}
	next := driver.Question{Op: quorum.Acquire, Lease: r, Waits: true}
	unknown, known, counts := &Session{Node: &Node{}}, &Session{Node: &Node{}, run: "abcdefghijkl"}, &Session{Node: &Node{}, run: "abcdefghijkl"}
	counts.Node.fitness.shared, counts.Node.quarantined.until = s, s.Config.Clock.Now().Add(time.Hour)
	for _, q := range []driver.Question{{Op: quorum.Acquire, Lease: r}, next, {Op: quorum.Heal, Lease: r}, {Op: quorum.Release, Lease: r}, {Op: quorum.Release, Lease: r, Next: &next}} {
		c := s.Encode(q, nil)
		for w, want := range map[*Session]string{unknown: "1 open 0123456789ab ------------", known: "1 open 0123456789ab abcdefghijkl", counts: "1 wait 0123456789ab abcdefghijkl"} {
			byHash := words(t, w.setPushFlagLocked(c, slices.Clone(c.Bytes)))
			byText := words(t, w.setPushFlagLocked(c, c.ByText(nil)))
			for _, said := range [][]string{byHash, byText} {
				if got := said[len(said)-1]; got != want {
					t.Errorf("%s: %q, want %q", c.Script.Name, got, want)
				}
			}
		}
	}
}

// A command about many leases is whole as well.
func TestBundlesAreWhole(t *testing.T) {
	s := bareStore(config.Config{})
	r := store.Lease{Name: "a", Owner: "o", Meta: "m", TTL: 1500 * time.Microsecond}
	var last *script.Command
	for _, asked := range []int{1, 2, 3, 10, script.MaxBundle, script.MaxBundle + 1, 1} {
		c, n := s.Bundle(slices.Repeat([]store.Lease{r}, asked), last)
		if last = c; n != min(asked, script.MaxBundle) {
			t.Errorf("%d of %d leases in one command, want at most %d", n, asked, script.MaxBundle)
		}
		byHash, byText := words(t, c.Bytes), words(t, c.ByText(nil))
		want := slices.Concat([]string{fmt.Sprint(2 * n)}, slices.Repeat([]string{"a"}, n), slices.Repeat([]string{"{a}:token"}, n), slices.Repeat([]string{"o m"}, n), []string{"2"})
		if byHash[0] != "EVALSHA" || byHash[1] != c.Script.Hash() || !slices.Equal(byHash[2:], want) {
			t.Errorf("%d leases: %q, want EVALSHA with %q", n, byHash, want)
		}
		if byText[0] != "EVAL" || byText[1] != c.Script.Text() || !slices.Equal(byText[2:], want) {
			t.Errorf("%d leases by text: %q, want EVAL with %q", n, byText, want)
		}
	}
	other := r
	other.TTL *= 2
	safe := r
	safe.Require = store.CrashSafe
	for i, leases := range [][]store.Lease{{r, r, other}, {r, r, safe}, {safe, safe, r}} {
		if _, n := s.Bundle(leases, last); n != 2 {
			t.Errorf("%d leases of kind %d in one command, want the two that are alike", n, i)
		}
	}
}

// Encoding a command into the memory of an old one allocates nothing.
func TestCommandsAllocateNothing(t *testing.T) {
	s := bareStore(config.Config{})
	r := store.Lease{Name: "jobs/nightly", Owner: store.NewOwner(), Meta: `{"host":"h","pid":1}`, TTL: 30 * time.Second}
	old := s.Encode(driver.Question{Op: quorum.Acquire, Lease: r}, nil)
	if n := testing.AllocsPerRun(100, func() {
		for op := quorum.Acquire; op <= quorum.Heal; op++ {
			old = s.Encode(driver.Question{Op: op, Lease: r, Token: 1790000000123456, Tombstone: true}, old)
		}
	}); n > 0 {
		t.Errorf("%v allocations for five commands, want none", n)
	}
	leases := slices.Repeat([]store.Lease{r}, script.MaxBundle)
	old, _ = s.Bundle(leases, old)
	if n := testing.AllocsPerRun(100, func() { old, _ = s.Bundle(leases, old) }); n > 0 {
		t.Errorf("%v allocations for a command about %d leases, want none", n, script.MaxBundle)
	}
}
