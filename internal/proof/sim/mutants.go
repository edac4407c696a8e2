//go:build mutants

package sim

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/renewer"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Mutant is the project with one mechanism taken out.
type Mutant struct {
	Name     string
	mech     *bool // in the production code
	switches func(*Switches)
}

// idleOnly are those that show only in how long a lock stays nobody's.
var idleOnly = map[string]bool{"node-skips-the-dead": true, "redis-ask-what-was-missed": true}

// Mutants are those that this build can make, sorted by name. What is wrong
// with each is said where its mechanism is defined.
func Mutants() []Mutant {
	all := []Mutant{
		{Name: "boot-clock", switches: func(s *Switches) { s.NoBootClock = true }},
	}
	for name := range changes {
		all = append(all, Mutant{Name: name, switches: func(s *Switches) { s.Edit = without(name) }})
	}
	for _, from := range []struct {
		where string
		of    map[string]*bool
	}{{"client", leasehold.Mechanisms}, {"client", renewer.Mechanisms}, {"wait", leasehold.WaitMechanisms}, {"wait", waitq.Mechanisms}, {"lease", leasefsm.Mechanisms}, {"quorum", quorum.Mechanisms}, {"redis", redisstore.Mechanisms}} {
		for name, on := range from.of {
			all = append(all, Mutant{Name: from.where + "-" + name, mech: on})
		}
	}
	all = slices.DeleteFunc(all, func(m Mutant) bool { return idleOnly[m.Name] && idlePending })
	slices.SortFunc(all, func(a, b Mutant) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Catch runs the scripts of seeds 1 to most with m's mechanism taken out, and
// beside the first of them the hard ones, and says how that was noticed, if it
// was. No other run may be under way.
func (m Mutant) Catch(t *testing.T, most int) (how string, caught bool) {
	sw := Shipped()
	if m.switches != nil {
		m.switches(&sw)
	}
	if m.mech != nil {
		*m.mech = false
		defer func() { *m.mech = true }()
	}
	noticed := func(what string, s Script) bool {
		if r := Run(t, s, sw, false); len(r.Violations) > 0 {
			how, caught = fmt.Sprintf("%s: %s", what, r.Violations[0]), true
		}
		return caught
	}
	for seed := range uint64(most) {
		if noticed(fmt.Sprintf("seed %d", seed+1), OfSeed(seed+1)) ||
			seed < 40 && noticed(fmt.Sprintf("jumping clocks, seed %d", seed), jumping(seed)) ||
			seed < 40 && noticed(fmt.Sprintf("fading network, seed %d", seed), fading(seed)) ||
			seed < 40 && noticed(fmt.Sprintf("lists, seed %d", seed), rollingList(seed)) ||
			seed == 0 && noticed("rolling restarts", rolling()) {
			break
		}
	}
	return how, caught
}
