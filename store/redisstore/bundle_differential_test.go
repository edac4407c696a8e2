package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A server answers the same about each lease, and does the same, whether leases are renewed
// one after the other or by one command, whatever state each is in.
func TestBundleEqualsSingleRenewals(t *testing.T) {
	n, seen := onRedis(t), map[string]int{}
	for seed := range uint64(200) {
		if err := n.twice(rand.New(rand.NewPCG(seed, 1)), seen); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if t.Log(seen); len(seen) < 5 {
		t.Errorf("%d kinds of answers came up, want at least 5", len(seen))
	}
}

// leaseStates has commands that bring a lease into a state. Its value and key are filled in.
var leaseStates = []string{
	"SET %[2]s %[1]s PX 20000", "SET %[2]s %[1]s PX 20000", "SET %[2]s %[1]s PX 20000", "SET %[2]s %[1]s PX 20000",
	"SET %[2]s %[1]s PX 90000", "SET %[2]s %[1]s", "SET %[2]s another PX 20000", "SET %[2]s %[1]sx", "SET %[2]s ",
	"DEL %[2]s", "RPUSH %[2]s %[1]s", "HSET %[2]s %[1]s x",
}

// marks has commands that write the key of the mark. A | stands for a space.
var marks = []string{
	spaced(openMark), spaced(markOf(func(m *nodemark.Mark) { m.Print, m.List = "0123456789ab", "a:1" })), "DEL %s",
	spaced(markOf(func(m *nodemark.Mark) { m.Print, m.List = "9876543210ab", "b:1" })), "SET %s nonsense", "RPUSH %s x",
}

func spaced(mark string) string { return "SET %s " + strings.ReplaceAll(mark, " ", "|") }

// twice renews some leases both ways, each time from the same state.
func (n *scripted) twice(random *rand.Rand, seen map[string]int) error {
	n.s.Membership.Fingerprint = "0123456789ab"
	do := func(format string, args ...any) *script.Command {
		words := strings.Split(fmt.Sprintf(format, args...), " ")
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "|", " ")
		}
		return script.NewCommand(words...)
	}
	var leases []store.Lease
	state := []*script.Command{script.NewCommand("FLUSHALL"), do(marks[random.IntN(len(marks))], script.MarkKey)}
	require := store.Class(random.IntN(2)) * store.CrashSafe
	for i := range 1 + random.IntN(8) {
		r := store.Lease{Name: fmt.Sprint("lock", i), Owner: fmt.Sprint("owner", i), TTL: time.Minute, Require: require}
		leases = append(leases, r)
		state = append(state, do(leaseStates[random.IntN(len(leaseStates))], r.Owner+"|{}", r.Name))
		if random.IntN(5) > 0 {
			state = append(state, script.NewCommand("SET", keysOf(r.Name)[1], "7", "PX", "1000000"))
		}
	}
	var said [2][]string
	for way, renew := range []func([]store.Lease) ([]driver.Reply, error){n.oneByOne, n.together} {
		if _, err := n.run(state...); err != nil {
			return err
		}
		answers, err := renew(leases)
		if err != nil {
			return err
		}
		for i, r := range leases {
			a := answers[i]
			for _, key := range keysOf(r.Name)[:2] {
				v, err := n.run(script.NewCommand("TYPE", key), script.NewCommand("PTTL", key))
				if err != nil {
					return err
				}
				left := time.Duration(v[1].Num) * time.Millisecond
				said[way] = append(said[way], fmt.Sprintf("%s: %s, left %v", key, v[0].Text, left.Round(10*time.Second)))
			}
			text := fmt.Sprint(a.Report.Err)
			if a.Report.Outcome == store.WrongType { // the text also names the place in the script
				text = "that it is"
			}
			said[way] = append(said[way], fmt.Sprintf("%s: %v, %v %v %v, %v, clock %v", r.Name, a.Kind, a.Report.Outcome, a.Report.Holder, a.Report.ExpiresIn.Round(10*time.Second), text, a.Clock > 0))
			seen[fmt.Sprintf("%v %v", a.Kind, a.Report.Outcome)]++
		}
	}
	if !slices.Equal(said[0], said[1]) {
		return fmt.Errorf("one by one:\n%s\ntogether:\n%s", strings.Join(said[0], "\n"), strings.Join(said[1], "\n"))
	}
	return nil
}

// oneByOne renews each lease with a command of its own.
func (n *scripted) oneByOne(leases []store.Lease) (all []driver.Reply, err error) {
	for _, r := range leases {
		c := n.s.Encode(driver.Question{Op: quorum.Extend, Lease: r}, nil)
		v, err := n.wire.Exchange(n.byText(c).Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, script.ReplyTo(v[0]).Answer(c.Script))
	}
	return all, nil
}

// together renews all leases with one command, and one by one only if that was refused as a
// whole.
func (n *scripted) together(leases []store.Lease) ([]driver.Reply, error) {
	c, all := n.s.Bundle(leases, nil)
	v, err := n.wire.Exchange(n.byText(c).Bytes)
	if err != nil || all != len(leases) {
		return nil, fmt.Errorf("%d of %d leases: %w", all, len(leases), err)
	}
	r := script.ReplyTo(v[0])
	r.At = 1
	if all == 1 {
		return []driver.Reply{r.Answer(c.Script)}, nil
	}
	usual, others := r.Answers(c.Script, all)
	if usual.RetrySingly {
		return n.oneByOne(leases)
	}
	return apart(usual, others, all), nil
}
