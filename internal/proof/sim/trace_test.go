package sim

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// mistaken is a store that changes its grants, which took so long.
type mistaken struct {
	*store.Store
	change func(g *store.Grant, took time.Duration)
}

func (s mistaken) Wait(ctx context.Context, r store.WaitRequest, report func(error)) (store.Grant, error) {
	began := time.Now()
	g, err := s.Store.Wait(ctx, r, report)
	s.change(&g, time.Since(began))
	return g, err
}

func mistake(change func(g *store.Grant, took time.Duration)) func(*world) {
	return func(w *world) {
		w.wrap = func(s *store.Store) *store.Store { return store.New(mistaken{s, change}) }
	}
}

// interrupting has an operator end the lease of a client that is cut off and asks on.
func interrupting(seed uint64) Script { return attended(15+seed, 0) }

// The steps of the proof do not include what these clients and nodes do wrong.
func TestWrongStepsAreFound(t *testing.T) {
	for _, c := range []struct {
		name     string
		script   func(seed uint64) Script
		switches Switches
		tamper   func(*world)
		says     string
	}{
		{
			name: "validity counts from the end of the acquire", script: OfSeed,
			tamper: mistake(func(g *store.Grant, took time.Duration) { g.Since = took }),
			says:   "win(",
		},
		{
			name: "a client takes a token that the nodes have passed", script: OfSeed,
			tamper: mistake(func(g *store.Grant, _ time.Duration) { g.Token-- }),
			says:   "win(",
		},
		{
			name: "a node confirms a token that it does not stand at", script: OfSeed,
			switches: Switches{Edit: without("node-raises-counter")},
			says:     "win(",
		},
		{
			name: "a lease is renewed after its end", script: dozing,
			switches: Switches{NoBootClock: true},
			says:     "the lease is valid still",
		},
		{
			name: "a node grants in its quarantine", script: crashing,
			switches: Switches{Edit: without("quarantine")},
			says:     "the node's quarantine is over",
		},
		{
			name: "a client has its lease again after another client ended it", script: interrupting,
			switches: Switches{Disguised: true, StepsOnly: true},
			says:     "the attempt was not given up",
		},
		{
			name: "a node ends another lease for an operator", script: interrupting,
			switches: Switches{Blunt: true, StepsOnly: true},
			says:     "win(",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(10) {
				for _, v := range run(t, c.script(seed), c.switches, false, c.tamper).Violations {
					if v.Rule == Step && strings.Contains(v.Text, c.says) {
						t.Logf("seed %d: %v", seed, v)
						return
					}
				}
			}
			t.Errorf("no refusal with %q in ten seeds", c.says)
		})
	}
}
