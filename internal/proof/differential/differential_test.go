package differential

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// modelSubject is the model node as the engine that is compared with the rule.
type modelSubject struct {
	rules modelnode.Rules
	now   clock.Instant
	locks map[string]*byModel
}

func (m *modelSubject) Traits() Traits { return Traits{Node: true, Tombstones: true} }

func (m *modelSubject) Begin(now clock.Instant) error {
	m.now, m.locks = now, map[string]*byModel{}
	for _, lock := range Locks {
		m.locks[lock] = &byModel{rules: m.rules}
	}
	return nil
}

func (m *modelSubject) Pass(d time.Duration) error {
	m.now = m.now.Add(d)
	return nil
}

func (m *modelSubject) Clock() (clock.Instant, error) { return m.now, nil }

func (m *modelSubject) Do(c Command) (ans Answer, err error) {
	if c.Op == LoseAll {
		for _, l := range m.locks {
			ans = l.do(c, nil, m.now)
		}
	} else {
		ans = m.locks[c.Lock].do(c, nil, m.now)
	}
	ans.Before, ans.After = m.now, m.now
	return ans, nil
}

func (m *modelSubject) Look(lock string) (State, error) { return m.locks[lock].state(m.now), nil }

func TestModelNode(t *testing.T) { Check(t, &modelSubject{rules: modelnode.Shipped()}) }

// The comparison finds each missing mechanism of the node.
func TestModelNodeWithout(t *testing.T) {
	for name, change := range map[string]func(*modelnode.Rules){
		"the clock as the floor":     func(r *modelnode.Rules) { r.NoClock = true },
		"tombstones":                 func(r *modelnode.Rules) { r.NoTombstones = true },
		"confirming only our own":    func(r *modelnode.Rules) { r.ConfirmAnywhere = true },
		"expiries that never shrink": func(r *modelnode.Rules) { r.ExpiryShrinks = true },
		"extending only a lease":     func(r *modelnode.Rules) { r.ExtendCreates = true },
		"the limit to proposals":     func(r *modelnode.Rules) { r.MaxLead = time.Hour },
		"counters kept for a day":    func(r *modelnode.Rules) { r.CounterLife = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			rules := modelnode.Shipped()
			change(&rules)
			err := Find(&modelSubject{rules: rules}, 200)
			if err == nil || !strings.Contains(err.Error(), "the rule") {
				t.Fatalf("found %v, want a difference from the rule", err)
			}
		})
	}
}

// The generated steps reach every verdict of every operation many times.
func TestStepsReachEverything(t *testing.T) {
	seen := map[string]int{}
	m := &modelSubject{rules: modelnode.Shipped()}
	s := watched{m, func(c Command, a Answer) {
		what := fmt.Sprint(c.Op, ": ", a.Verdict)
		if a.Holder == Stranger {
			what += " by a stranger"
		}
		seen[what]++
	}}
	list := steps(true)
	for seed := range 800 {
		if err := Run(s, list.Example(seed)); err != nil {
			t.Fatal(err)
		}
	}
	for _, op := range []Op{Confirm, Extend, Release, Bury, BuryRenewed} {
		for _, v := range []string{"done", "taken", "taken by a stranger", "nobody has it"} {
			atLeast(t, seen, fmt.Sprint(op, ": ", v))
		}
	}
	for _, op := range []Op{Acquire, Heal} {
		for _, v := range []string{"done", "taken", "taken by a stranger", "buried"} {
			atLeast(t, seen, fmt.Sprint(op, ": ", v))
		}
	}
	for _, v := range []string{"done", "taken"} {
		atLeast(t, seen, fmt.Sprint(StrangerSets, ": ", v))
	}
}

// atLeast requires that the steps have reached what many times.
func atLeast(t *testing.T, seen map[string]int, what string) {
	t.Helper()
	if n := seen[what]; n < 20 {
		t.Errorf("%q was reached %d times, want 20 at least", what, n)
	}
}

// watched is a subject that reports its answers.
type watched struct {
	Subject
	report func(Command, Answer)
}

func (w watched) Do(c Command) (Answer, error) {
	a, err := w.Subject.Do(c)
	w.report(c, a)
	return a, err
}

// memorySubject is the store in memory as the engine.
type memorySubject struct {
	now clock.Instant
	s   *store.Store
}

func (m *memorySubject) Traits() Traits { return Traits{} }

func (m *memorySubject) Begin(now clock.Instant) error {
	m.now = now
	m.s = memstore.New(&memstore.Options{Clock: clock.Func(func() clock.Instant { return m.now })})
	return nil
}

func (m *memorySubject) Pass(d time.Duration) error {
	m.now = m.now.Add(d)
	return nil
}

func (m *memorySubject) Clock() (clock.Instant, error) { return m.now, nil }

func (m *memorySubject) Do(c Command) (Answer, error) { return ByStore(m.s, c) }

func (m *memorySubject) Look(lock string) (State, error) {
	st, err := m.s.Inspect(context.Background(), lock)
	return State{Holder: st.Holder.Owner, Left: st.ExpiresIn, Token: uint64(st.Token)}, err
}

func TestMemory(t *testing.T) { Check(t, &memorySubject{}) }

// The error for a difference lists the steps, with the answer to each.
func TestTrace(t *testing.T) {
	s := &modelSubject{rules: modelnode.Shipped()}
	s.rules.ExtendCreates = true
	err := Run(s, []Step{
		{Op: Acquire, TTL: unit, Ahead: 500_000},
		{Op: Pass, TTL: unit},
		{Op: Extend, TTL: 2 * unit},
		{Op: Release},
	})
	const want = `after
  1. acquire "stock" for ann, TTL 10m0s, proposing the clock +500000 -> done, token 1790000000623456
  2. 10m0s passes
  3. extend "stock" for ann, TTL 20m0s -> done
     the engine answers: done
     the rule: nobody has it`
	if err == nil || err.Error() != want {
		t.Fatalf("got\n%v\nwant\n%s", err, want)
	}
}

// An error of the subject itself is returned, and does not count as an answer.
func TestFailure(t *testing.T) {
	broken := errors.New("broken")
	s := failing{&modelSubject{rules: modelnode.Shipped()}, broken}
	if err := Run(s, []Step{{Op: Acquire, TTL: unit}}); !errors.Is(err, broken) {
		t.Fatalf("Run of a broken subject: %v, want its error", err)
	}
}

// failing is a subject whose steps fail.
type failing struct {
	Subject
	err error
}

func (f failing) Do(Command) (Answer, error) { return Answer{}, f.err }
