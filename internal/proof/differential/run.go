package differential

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
)

// Check runs s through random lists of steps, and fails with the shortest list it finds
// after which s differs from the rule. The flag -rapid.checks sets the number of lists.
func Check(t *testing.T, s Subject) {
	t.Helper()
	list := steps(!s.Traits().Live)
	rapid.Check(t, func(t *rapid.T) {
		if err := Run(s, list.Draw(t, "steps")); err != nil {
			// The text of the failure must stay the same while it is shrunk, but tokens
			// of a running clock do not.
			t.Log(err)
			t.Fatal("the engine differs from the rule: see below")
		}
	})
}

// Find is Check for an s that should fail. It returns the first difference found in the
// given number of lists of steps, or nil. The lists are the same each time.
func Find(s Subject, lists int) error {
	list := steps(!s.Traits().Live)
	for seed := range lists {
		if err := Run(s, list.Example(seed)); err != nil {
			return err
		}
	}
	return nil
}

// start is the initial time of clocks that can be set. It is a time of day, because
// tokens are made of it and have that many digits.
const start = clock.Instant(1_790_000_000_123_456_000)

// run executes one list of steps.
type run struct {
	s      Subject
	traits Traits
	now    clock.Instant // passes as the steps say, for live subjects, too
	rules  map[string]*byRule
	models map[string]*byModel
	// highest is the largest token of each lock since its counter was lost.
	highest map[string]uint64
	trace   strings.Builder
}

// Run takes s through the steps, from the beginning, and returns its first difference
// from rule and model, or its own error.
func Run(s Subject, steps []Step) error {
	r := &run{s: s, traits: s.Traits(), now: start, rules: map[string]*byRule{}, models: map[string]*byModel{}, highest: map[string]uint64{}}
	for _, lock := range Locks {
		r.rules[lock] = &byRule{traits: r.traits}
		r.models[lock] = &byModel{rules: modelnode.Shipped()}
	}
	if err := s.Begin(r.now); err != nil {
		return err
	}
	for i, step := range steps {
		if !r.traits.takes(step.Op) {
			continue
		}
		fmt.Fprintf(&r.trace, "%3d. %v", i+1, step)
		err := r.step(step)
		if err == nil {
			// Check every lock if time has passed and at the end, otherwise only this
			// one.
			looked := Locks[step.Lock : step.Lock+1]
			if step.Op == Pass || step.Op == LoseAll || i == len(steps)-1 {
				looked = Locks
			}
			err = r.look(looked)
		}
		if err != nil {
			return fmt.Errorf("after\n%s\n%w", r.trace.String(), err)
		}
		r.trace.WriteByte('\n')
	}
	return nil
}

func (r *run) step(st Step) error {
	if st.Op == Pass {
		r.now = r.now.Add(st.TTL)
		return r.s.Pass(st.TTL)
	}
	c, err := r.command(st)
	if err != nil {
		return err
	}
	got, err := r.s.Do(c)
	if err != nil {
		return err
	}
	fmt.Fprintf(&r.trace, " -> %v", got)
	// The engine must keep what the references keep.
	c.TTL = r.traits.ttl(c.TTL)
	floor := r.floor(c, got)
	locks := []string{c.Lock}
	if c.Op == LoseAll {
		locks = Locks
	}
	for _, lock := range locks {
		if err := r.same("the rule", got, r.rules[lock].do(c, floor, r.now)); err != nil {
			return err
		}
		if !r.traits.Node {
			continue
		}
		given := &floor
		if !r.traits.Live {
			given = nil
		}
		if err := r.same("the model node", got, r.models[lock].do(c, given, r.now)); err != nil {
			return err
		}
	}
	return r.rising(c, got)
}

// rising checks that every grant's token is larger than all earlier ones, including
// those whose counter has been forgotten since. If the clock does not move, that cannot
// be required.
func (r *run) rising(c Command, got Answer) error {
	switch {
	case r.traits.Live:
	case c.Op == LoseAll:
		clear(r.highest)
	case c.Op == LoseCounter:
		delete(r.highest, c.Lock)
	case got.Token > 0:
		if rule := r.rules[c.Lock]; rule.fresh && got.Token <= r.highest[c.Lock] {
			return fmt.Errorf("     the engine grants token %d, want more than %d", got.Token, r.highest[c.Lock])
		}
		r.highest[c.Lock] = max(r.highest[c.Lock], got.Token)
	}
	return nil
}

// command turns a step into a command with absolute values.
func (r *run) command(st Step) (Command, error) {
	c := Command{Op: st.Op, Lock: Locks[st.Lock], Owner: Owners[st.Owner], TTL: st.TTL}
	switch st.Op {
	case Acquire:
		now, err := r.s.Clock()
		if err != nil {
			return c, err
		}
		base := int64(now) / 1000
		if st.Onward {
			base = r.counter(c.Lock)
		}
		c.Token = uint64(max(0, base+st.Ahead))
	case Confirm:
		c.Token = uint64(max(1, r.counter(c.Lock)+st.Ahead))
	case Bury, BuryRenewed:
		c.TTL = tombstoneLife(st.Owner)
	}
	return c, nil
}

// counter returns the value of the lock's counter.
func (r *run) counter(lock string) int64 { return int64(r.rules[lock].state(r.now).Token) }

// floor returns the least token that the clock and the proposal allowed the engine to
// draw. If only two bounds are known and the token that was drawn is between them, it
// is that token: the references then draw the same, unless their counters are larger.
func (r *run) floor(c Command, got Answer) uint64 {
	if c.Op != Acquire {
		return 0
	}
	least, most := uint64(0), uint64(math.MaxUint64)
	if r.traits.Node {
		least, most = floorAt(min(got.Before, got.After), c.Token), floorAt(max(got.Before, got.After), c.Token)
	}
	return min(max(got.Token, least), most)
}

// same compares the answers.
func (r *run) same(reference string, got, want Answer) error {
	got, want = r.traits.nearAnswer(got), r.traits.nearAnswer(want)
	if got != want {
		return fmt.Errorf("     the engine answers: %v\n     %s: %v", got, reference, want)
	}
	return nil
}

// look compares the remaining state of the locks.
func (r *run) look(locks []string) error {
	for _, lock := range locks {
		state, err := r.s.Look(lock)
		if err != nil {
			return err
		}
		got := r.traits.nearState(state)
		if want := r.traits.nearState(r.rules[lock].state(r.now)); !got.equal(want) {
			return fmt.Errorf("     the engine has %q: %v\n     the rule: %v", lock, got, want)
		}
		if !r.traits.Node {
			continue
		}
		if want := r.traits.nearState(r.models[lock].state(r.now)); !got.equal(want) {
			return fmt.Errorf("     the engine has %q: %v\n     the model node: %v", lock, got, want)
		}
	}
	return nil
}
