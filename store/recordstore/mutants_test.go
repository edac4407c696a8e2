//go:build mutants

package recordstore_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/mutant"
)

// Each rule of the engine matters: without it, a test fails.
func TestMechanismsAreNeeded(t *testing.T) {
	mutant.Check(t, []mutant.Mutant{
		{Name: "a renewal begins a new beat", File: "snapshot.go", Old: "l.expiry == *expiry && !touched[key]", New: "l.expiry == *expiry", Run: "TestRenewalByANewcomer"},
		{Name: "a writer notes the age of beats", File: "snapshot.go", Old: "beat{l.id, max(0, now.Sub(l.first)), l.by}", New: "beat{l.id, 0, l.by}", Run: "TestAgeOfABeat"},
		{Name: "dates count", File: "snapshot.go", Old: "since = max(0, it.Now.Sub(it.Written))", New: "since = 0", Run: "TestAgeOfABeat"},
		{Name: "the age is a bound from below", File: "snapshot.go", Old: "first: back(at, b.age+since)", New: "first: back(at, b.age+since+time.Duration(*expiry)/4)", Run: "TestContestsUnderFaults"},
		{Name: "a known beat goes on", File: "snapshot.go", Old: "l.first, l.own = min(l.first, known.first), known.own", New: "l.own = known.own", Run: "TestAgeOfABeat"},
		{Name: "versions differ in a random number", File: "snapshot.go", Old: "id := rand.Uint64()", New: "id := uint64(1)", Run: "TestNoTwoVersionsAreAlike|TestFate"},
		{Name: "a write that was applied is not made again", File: "snapshot.go", Old: "case slices.Contains(s.writes, w.next.last()):\n\t\treturn applied", New: "case slices.Contains(s.writes, w.next.last()):\n\t\treturn dead", Run: "TestFaults"},
		{Name: "a pending write is sent as it was", File: "register.go", Old: "case !errors.Is(err, ErrConflict):\n\t\t\tw.sent = true", New: "case !errors.Is(err, ErrConflict):\n\t\t\tw = nil", Run: "TestFaults"},
		{Name: "an undo writes in any case", File: "store.go", Old: "t.end(store.ReleaseRequest{Lease: r, Undo: true})\n\t\t\t\tt.wrote = true", New: "t.end(store.ReleaseRequest{Lease: r, Undo: true})", Run: "TestNothingIsLeft"},
		{Name: "an attempt that failed is undone", File: "store.go", Old: "if maybe {\n\t\t\ts.undo(r.Lease)", New: "if false {\n\t\t\ts.undo(r.Lease)", Run: "TestFaults"},
		{Name: "a holder counts from its last refresh", File: "wait.go", Old: "return decision{granted: h, since: mine.first}", New: "return decision{granted: h, since: now}", Run: "TestConformance$|TestContestsUnderFaults"},
		{Name: "a hand-off counts when a write is acknowledged", File: "wait.go", Old: "(!w.confirm || snap.acknowledged)", New: "true", Run: "TestHandOffCounts"},
		{Name: "a record begins above the writes before it", File: "snapshot.go", Old: "return fence.Token(s.number*tokensPerWrite + 1)", New: "return 0", Run: "TestConformance$|TestContestsUnderFaults"},
		{Name: "an older push is ignored", File: "register.go", Old: "case last != known:", New: "case last != known && known != nil:", Run: "TestOlderPushes"},
		{Name: "only the first waiter hands on", File: "wait.go", Old: "late := time.Duration(i) * grace", New: "late := time.Duration(0)", Run: "TestOnlyTheFirst"},
		{Name: "a refusal is judged by the newest version", File: "register.go", Old: "if !t.wrote && (newest || t.needless == len(steps))", New: "if !t.wrote", Run: "TestConformance$"},
		{Name: "renewals do not hasten looks", File: "follow.go", Old: "!snap.sameTurns(seen)", New: "seen == nil || snap.version != seen.version", Run: "TestRenewalsDoNotHasten"},
		{Name: "a busy client leaves turns to others", File: "turns.go", Old: "n.row <= most && now.Sub(n.began) <= longest", New: "true", Run: "TestBusyClient"},
		{Name: "a client whose write has lost pauses as long as a write takes", File: "register.go", Old: "most = g.s.lost(snap, ended.Sub(began))", New: "_ = g.s.lost(snap, ended.Sub(began))", Run: "TestNewcomerBeside"},
		{Name: "a holder tries again at once", File: "snapshot.go", Old: "if s.lives[entry{owner: h.Owner}].own {", New: "if false && s.lives[entry{owner: h.Owner}].own {", Run: "TestClientsThatAllWant"},
		{Name: "a crowd leaves room for the ages of its beats", File: "wire.go", Old: "n := 128", New: "n := 48", Run: "TestCrowd|TestMaxLen"},
		{Name: "steps go together", File: "register.go", Old: "const maxSteps = 256", New: "const maxSteps = 1", Run: "TestRenewalsOfOneLock"},
	})
}
