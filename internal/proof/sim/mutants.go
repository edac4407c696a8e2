//go:build mutants

package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/holds"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/renewer"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/internal/waits"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Mutant is the project with one mechanism taken out.
type Mutant struct {
	Name   string
	mech   *bool  // in the production code; nil: it is one of the scripts, or the clock
	edit   string // of the scripts; its name in changes
	script func(seed uint64) Script
	seed   uint64 // the first with which the script shows that the mechanism is missing
	idle   bool   // it shows only in how long an available lock stays free
	step   string // that the proof refuses, and what it then lacks; empty: promises are judged
}

// tries is how many further seeds are tried if the recorded one does not show it any
// more, because the production code now does something else at some instant.
const tries = 40

// Mutants are those that the simulator notices, sorted by name, each with the run in which
// it does. The definition of each mechanism says what it is for.
func Mutants() []Mutant {
	client, held, nodes := leasehold.Mechanisms, holds.Mechanisms, redisstore.Mechanisms
	all := []Mutant{
		{Name: "boot-clock", script: dozing, seed: 23},
		{Name: "client-clock-read", mech: renewer.Mechanisms["clock-read"], script: dozingLong, seed: 4},
		{Name: "client-err-looks", mech: held["err-looks"], script: dozing, seed: 1},
		{Name: "client-least-hold", mech: held["least-hold"], script: OfSeed, seed: 1},
		{Name: "client-longest-hold", mech: client["longest-hold"], script: quiet, seed: 1},
		{Name: "client-loss-told", mech: held["loss-told"], script: quiet, seed: 1},
		{Name: "client-notice", mech: client["notice"], script: holding, seed: 1},
		{Name: "client-release-detached", mech: held["release-detached"], script: holding, seed: 1, idle: true},
		{Name: "client-renewing", mech: client["renewing"], script: rollingShort, seed: 1},
		{Name: "driver-discount-each", mech: driver.Mechanisms["discount-each"], script: jumpingTogether, seed: 2},
		{Name: "quorum-confirm-token", mech: quorum.Mechanisms["confirm-token"], script: OfSeed, seed: 10},
		{Name: "quorum-free-on-most", mech: quorum.Mechanisms["free-on-most"], script: halfDeaf, seed: 3},
		{Name: "quorum-heal", mech: quorum.Mechanisms["heal"], script: rollingShort, seed: 1},
		{Name: "quorum-over-half", mech: quorum.Mechanisms["over-half"], script: deafening, seed: 1},
		{Name: "quorum-bury-doubtful", mech: quorum.Mechanisms["bury-doubtful"], script: cutting, seed: 8},
		{Name: "quorum-bury-repeated", mech: quorum.Mechanisms["bury-repeated"], script: cutting, seed: 8},
		{Name: "redis-ask-what-was-missed", mech: nodes["ask-what-was-missed"], script: missing, seed: 12, idle: true},
		{Name: "redis-clock-watch", mech: nodes["clock-watch"], script: jumpingTogether, seed: 2},
		{Name: "redis-error-says-nothing", mech: nodes["error-says-nothing"], script: ailing, seed: 1},
		{Name: "redis-look-at-mark", mech: nodes["look-at-mark"], script: losingOnce, seed: 1},
		{Name: "redis-releases-retained", mech: nodes["releases-retained"], script: blinking, seed: 1, idle: true},
		{Name: "redis-stamp-of-push", mech: nodes["stamp-of-push"], script: contention, seed: 6},
		{Name: "wait-grant-from-since", mech: waits.Mechanisms["grant-from-since"], script: contention, seed: 6},
		{Name: "wait-returned-given-up", mech: waitq.Mechanisms["returned-given-up"], script: refusing, seed: 2, idle: true},

		{Name: "quarantine", edit: "quarantine", script: crashing, seed: 1},
		{Name: "quarantine-long-enough", edit: "quarantine-long-enough", script: crashing, seed: 11},
		{Name: "node-clock-floor", edit: "node-clock-floor", script: uncounted, seed: 1},
		{Name: "node-hands-to-its-list", edit: "node-hands-to-its-list", script: rollingList, seed: 50},
		{Name: "node-knows-its-run", edit: "node-knows-its-run", script: copied, seed: 2},
		{Name: "node-looks-at-lists", edit: "node-looks-at-lists", script: rollingList, seed: 17},
		{Name: "node-skips-the-dead", edit: "node-skips-the-dead", script: killing, seed: 3},
		{Name: "node-tombstones", edit: "node-tombstones", script: cutting, seed: 8},
	}
	slices.SortFunc(all, func(a, b Mutant) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// MutantSteps are the mutants that take a step which the proof does not have, sorted by name.
// docs/verification.md says why others take none.
func MutantSteps() []Mutant {
	const (
		majorityGranted  = "win(each node of the majority stands at the token, and keeps the lock until the lease ends"
		majorityExtended = "renew(each node of the majority extended the lease until then"
	)
	const readWrite, semaphore = 1, 2
	held, nodes := holds.Mechanisms, redisstore.Mechanisms
	all := []Mutant{
		{Name: "boot-clock", script: dozing, seed: 1, step: "renew(the lease is valid still"},
		{Name: "client-renewal-from-start", mech: held["renewal-from-start"], script: holding, seed: 1, step: majorityExtended},
		{Name: "driver-discount-each", mech: driver.Mechanisms["discount-each"], script: jumpingTogether, seed: 2, step: majorityGranted},
		{Name: "driver-uncounted-renewals", mech: driver.Mechanisms["uncounted-renewals"], script: jumpingTogether, seed: 2, step: majorityExtended},
		{Name: "lease-from-start", mech: leasefsm.Mechanisms["from-start"], script: dozing, seed: 1, step: majorityGranted},
		{Name: "quorum-confirm-token", mech: quorum.Mechanisms["confirm-token"], script: OfSeed, seed: 10, step: majorityGranted},
		{Name: "quorum-over-half", mech: quorum.Mechanisms["over-half"], script: deafening, seed: 1, step: majorityGranted},
		{Name: "redis-clock-watch", mech: nodes["clock-watch"], script: jumpingTogether, seed: 2, step: majorityGranted},
		{Name: "redis-stamp-of-push", mech: nodes["stamp-of-push"], script: contention, seed: 2, step: majorityGranted},
		{Name: "wait-grant-from-since", mech: waits.Mechanisms["grant-from-since"], script: contention, seed: 2, step: majorityGranted},

		{Name: "quarantine", edit: "quarantine", script: crashing, seed: 1, step: "grant(the node's quarantine is over"},
		{Name: "quarantine-long-enough", edit: "quarantine-long-enough", script: crashing, seed: 3, step: "grant(the node's quarantine is over"},
		{Name: "node-clock-floor", edit: "node-clock-floor", script: uncounted, seed: 1, step: "grant(the token is near the clock"},
		{Name: "node-prolongs-what-it-repeats", edit: "node-prolongs-what-it-repeats", script: OfSeed, seed: 18, step: majorityGranted},
		{Name: "node-hands-for-the-place", edit: "node-hands-for-the-place", script: OfSeed, seed: 10, step: "forget(the time that the node promised is over"},
		{Name: "node-extends-its-owner", edit: "node-extends-its-owner", script: OfSeed, seed: 3, step: majorityExtended},
		{Name: "kinds-never-shorten", edit: "kinds-never-shorten", script: shared(readWrite), seed: 1, step: majorityExtended},
		{Name: "node-hands-after-quarantine", edit: "node-hands-after-quarantine", script: losing, seed: 1, step: "grant(the node's quarantine is over"},
		{Name: "node-heals-after-quarantine", edit: "node-heals-after-quarantine", script: rollingShort, seed: 1, step: "heal(the node's quarantine is over"},
		{Name: "node-knows-its-run", edit: "node-knows-its-run", script: copied, seed: 6, step: "heal(the node's quarantine is over"},
		{Name: "node-never-creates", edit: "node-never-creates", script: rollingShort, seed: 1, step: "extend(the attempt has the lock there"},
		{Name: "node-never-shortens", edit: "node-never-shortens", script: OfSeed, seed: 10, step: "forget(the time that the node promised is over"},
		{Name: "node-raises-counter", edit: "node-raises-counter", script: OfSeed, seed: 1, step: majorityGranted},

		{Name: "kinds-confirm-token", mech: quorum.Mechanisms["confirm-token"], script: shared(readWrite), seed: 1, step: majorityGranted},
		{Name: "kinds-agree-on-slots", mech: quorum.Mechanisms["agree-slots"], script: shared(semaphore), seed: 1, step: majorityGranted},
		{Name: "kinds-count-tokens", edit: "kinds-count-tokens", script: shared(semaphore), seed: 1, step: "grant(the token is near the clock"},
		{Name: "kinds-differ-in-slots", edit: "kinds-differ-in-slots", script: shared(semaphore), seed: 1, step: "grant(no attempt has the lock there that conflicts"},
		{Name: "kinds-hand-after-quarantine", edit: "kinds-hand-after-quarantine", script: sharedLosing(semaphore), seed: 2, step: "grant(the node's quarantine is over"},
		{Name: "kinds-keep-sums", edit: "kinds-keep-sums", script: shared(readWrite), seed: 2, step: "grant(the token is larger than the node's counter"},
		{Name: "kinds-leave-room", edit: "kinds-leave-room", script: shared(readWrite), seed: 1, step: "grant(no attempt has the lock there that conflicts"},
		{Name: "kinds-readers-draw", edit: "kinds-readers-draw", script: shared(readWrite), seed: 1, step: "grant(the token is larger than the node's counter"},
		{Name: "kinds-renew-their-slots", edit: "kinds-renew-their-slots", script: shared(semaphore), seed: 2, step: majorityExtended},
	}
	slices.SortFunc(all, func(a, b Mutant) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Catch runs the mutant's script, and says how it was noticed, if it was. stale is set if
// only another seed than the recorded one shows it. No other run may be under way.
func (m Mutant) Catch(t *testing.T) (how string, stale bool) {
	for i := range uint64(1 + tries) {
		v := m.broken(t, m.seed+i)
		if v == "" {
			continue
		}
		if r := Run(t, m.script(m.seed+i), Switches{Patient: !m.idle}, false); len(r.Violations) > 0 {
			t.Errorf("seed %d with nothing off: %s", m.seed+i, r.Violations[0])
		}
		return fmt.Sprintf("seed %d: %s", m.seed+i, v), i > 0
	}
	return "", true
}

// broken says which promise one run of the mutant breaks, or which step of it the proof refuses;
// empty: none.
func (m Mutant) broken(t *testing.T, seed uint64) string {
	sw := Switches{NoBootClock: m.Name == "boot-clock", Patient: !m.idle, PromisesOnly: m.step == "", StepsOnly: m.step != ""}
	if m.edit != "" {
		sw.Edit = without(m.edit)
	}
	if m.mech != nil {
		*m.mech = false
		defer func() { *m.mech = true }()
	}
	step, lacks, _ := strings.Cut(m.step, "(")
	for _, v := range Run(t, m.script(seed), sw, false).Violations {
		if m.step == "" || strings.Contains(v.Text, ": "+step+"(") && strings.Contains(v.Text, "it is not so that "+lacks) {
			return v.String()
		}
	}
	return ""
}

// Mechanism is the switch of the production code that makes the mutant; nil if what it
// lacks is not in that code.
func (m Mutant) Mechanism() *bool { return m.mech }
