package sqlstoretest

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/proof/differential"
)

// mutant is a mistake in the procedures.
type mutant struct{ name, old, new string }

// mutants has mistakes in the procedures of PostgreSQL that the comparison with the rule finds.
var mutants = []mutant{
	{"a lease outlasts its end", "IF l.owner IS NOT NULL AND l.ends > at THEN RETURN l; END IF;", "IF l.owner IS NOT NULL AND l.ends >= at THEN RETURN l; END IF;"},
	{"an ask shortens a lease", "IF l.ends < a.at + p_ttl THEN l.ends := a.at + p_ttl; END IF;", "l.ends := a.at + p_ttl;"},
	{"a renewal shortens a lease", "UPDATE locks SET ends = greatest(ends, at + ttls[i]::bigint)", "UPDATE locks SET ends = at + ttls[i]::bigint"},
	{"a renewal revives a lease", "ELSIF l.owner = owners[i] AND l.ends > at THEN", "ELSIF l.owner = owners[i] THEN"},
	{"any owner renews", "ELSIF l.owner = owners[i] AND l.ends > at THEN", "ELSIF l.ends > at THEN"},
	{"any owner releases", "done := coalesce(l.owner = p_owner AND l.ends > at, false)\n    AND", "done := coalesce(l.ends > at AND l.owner IS NOT NULL, false)\n    AND"},
	{"tokens stand still", "RETURN greatest(token + 1, at)", "RETURN greatest(token, 1)"},
	{"no floor of tokens", "RETURN greatest(token + 1, at)", "RETURN token + 1"},
	{"tombstones are ignored", "IF l.buried > a.at AND is_buried(l, attempt_of(p_owner, p_attempt), a.at) THEN a.verdict := 'buried'; RETURN a; END IF;", ""},
	{"tombstones stay", "t.owner = p_attempt AND t.ends > at);", "t.owner = p_attempt);"},
	{"a tombstone refuses all owners", "WHERE t.name = l.name AND t.owner = p_attempt AND t.ends > at", "WHERE t.name = l.name AND t.ends > at"},
	{"a tombstone ends earlier", "SET ends = greatest(tombs.ends, excluded.ends)", "SET ends = excluded.ends - 1"},
	{"the last waiter is first", "AND seq > l.served ORDER BY seq LIMIT 1) RETURNING", "AND seq > l.served ORDER BY seq DESC LIMIT 1) RETURNING"},
	{"dead waiters are handed the lock", "CONTINUE WHEN p.ends <= at;", ""},
	{"a hand-off lasts longer than the place", "l.meta := p.meta; l.ends := p.ends;", "l.meta := p.meta; l.ends := p.ends + 1;"},
	{"a waiter that barges is handed the lock", "IF p.barge THEN RETURN l; END IF;", ""},
	{"a refreshed place goes to the end", "    IF alive THEN\n", "    IF false THEN\n"},
	{"a place is shortened", "UPDATE places SET ends = greatest(ends, a.at + p_ttl), attempt", "UPDATE places SET ends = a.at + p_ttl, attempt"},
	{"a release keeps the place", "IF l.line AND NOT done THEN DELETE FROM places WHERE name = p_name AND owner = p_owner; END IF;\n    IF p_tomb", "IF p_tomb"},
	{"a release hands nothing on", "IF strong THEN l := settled(l, at, p_owner); END IF;", "IF strong AND done THEN l.owner := NULL; END IF;"},
	{"an ask does not settle", "IF strong AND (NOT p_barge OR NOT p_wait) THEN", "IF false THEN"},
	{"a waiter overtakes those before it", "IF l.owner IS NULL AND (p_barge OR NOT p_wait OR NOT l.line OR", "IF l.owner IS NULL AND (true OR"},
	{"the position is one off", "AND seq <= mine AND seq > l.served AND ends > at;", "AND seq < mine AND seq > l.served AND ends > at;"},
	{"ended places count", "AND seq <= mine AND seq > l.served AND ends > at;", "AND seq <= mine AND seq > l.served;"},
	{"a free lock is granted past its queue", "owner IS NULL AND NOT line AND buried <= at", "owner IS NULL AND buried <= at"},
	{"a free lock is granted past its tombstones", "owner IS NULL AND NOT line AND buried <= at", "owner IS NULL AND NOT line"},
	{"a held lock is granted", "owner IS NULL AND NOT line AND buried <= at", "NOT line AND buried <= at"},
	{"a free lock is granted with an old token", "lately() AND token < at;", "lately();"},
	{"any owner releases a lock without a queue", " AND owner OPERATOR(pg_catalog.=) p_owner FOR UPDATE;\n  IF FOUND AND p_tomb", " FOR UPDATE;\n  IF FOUND AND p_tomb"},
	{"a lease that is over is released", "done := l_ends OPERATOR(pg_catalog.>) at AND", "done :="},
	{"a release forgets the queue", "IF done AND l_line THEN", "IF false THEN"},
	{"a release serves the last waiter first", "ORDER BY p.seq LIMIT 1", "ORDER BY p.seq DESC LIMIT 1"},
	{"a release serves dead waiters", "RETURN ends > at AND NOT barge", "RETURN NOT barge"},
	{"a release serves waiters that barge", "RETURN ends > at AND NOT barge", "RETURN ends > at"},
	{"a release gives a token again", "next_token(l_token, at);\n  spares", "next_token(l_token - 1, 0);\n  spares"},
	{"a release has no floor of tokens", "next_token(l_token, at);\n  spares", "next_token(l_token, 0);\n  spares"},
	{"a lease that was handed on lasts longer than the place", "meta = next_meta, ends = next_ends,", "meta = next_meta, ends = next_ends + 1,"},
	{"a release passes over a place", "(pg_catalog.>) l_served ORDER", "(pg_catalog.>) l_served + 1 ORDER"},
	{"any owner releases a lock and rejoins", "AND owner OPERATOR(pg_catalog.=) p_owner FOR UPDATE;\n  IF FOUND AND l_line", "FOR UPDATE;\n  IF FOUND AND l_line"},
	{"a lease that is over is released with a place", "IF l_ends OPERATOR(pg_catalog.>) at AND", "IF"},
	{"an owner rejoins a free lock", "IF NOT standing THEN RETURN; END IF;", ""},
	{"an owner that rejoins has no place", "IF NOT standing THEN RETURN; END IF;\n  END IF;", "IF NOT standing THEN RETURN; END IF;\n  END IF;\n  RETURN;"},
	{"a look does not refresh the place", "UPDATE places SET ends = greatest(ends, a.at + p_ttl), signal", "UPDATE places SET ends = ends, signal"},
}

func TestMutatedProceduresAreCaught(t *testing.T) {
	steps := queueSteps(20, 60)
	everywhere(t, func(t *testing.T, on *bed) {
		catch(t, on, on.mutants, func(p *procedures, n int) bool {
			for _, story := range queueStories {
				if p.line(story) != nil {
					return true
				}
			}
			if differential.Find(p, n) != nil {
				return true
			}
			for seed := range n {
				if p.line(steps.Example(seed)) != nil {
					return true
				}
			}
			return false
		})
	})
}

func TestMutatedKindsAreCaught(t *testing.T) {
	steps := kindSteps(20, 60)
	everywhere(t, func(t *testing.T, on *bed) {
		catch(t, on, on.kindMutants, func(p *procedures, n int) bool {
			for _, story := range kindStories {
				if p.kinds(story) != nil {
					return true
				}
			}
			for seed := range n {
				if p.kinds(steps.Example(seed)) != nil {
					return true
				}
			}
			return false
		})
	})
}

// catch requires that find, with a number of lists of steps, catches each of the mutants.
func catch(t *testing.T, on *bed, mutants []mutant, find func(p *procedures, n int) bool) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			p := newProcedures(t, on, func(script string) string {
				if strings.Count(script, m.old) != 1 {
					t.Fatalf("%q occurs %d times in the script, want once", m.old, strings.Count(script, m.old))
				}
				return strings.Replace(script, m.old, m.new, 1)
			})
			const lists = 200
			// The first few lists catch most mutants.
			for _, n := range []int{lists / 20, lists / 5, lists} {
				if find(p, n) {
					return
				}
			}
			t.Errorf("%d lists of steps do not catch the mistake", lists)
		})
	}
}
