package sqlstoretest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
)

// While a transaction is open that may see the old rows, such as a backup, the server can remove
// none of them. Steps of a lock that was handed on many times meanwhile read no more of the
// server's pages than before.
func TestOldVersionsAreNotRead(t *testing.T) {
	t.Parallel()
	_, schema := postgres.newStore(t)
	session, err := postgres.handle(t).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	do := func(query string) {
		t.Helper()
		if _, err := session.ExecContext(t.Context(), postgres.in(schema, query)); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(name, owner string, wait bool) string {
		return fmt.Sprintf(`SELECT S.ask('%s', '%s', '', '', 60000000, 0, %v, false, false, 0)`, name, owner, wait)
	}
	handOn := func(name, from string) string {
		return fmt.Sprintf(`SELECT S.release_and_rejoin('%s', '%s', '', false, 0, false, 0, '%[2]s', '', '', 60000000, 0, false, false, 0)`, name, from)
	}
	release := func(name, owner string) string {
		return fmt.Sprintf(`SELECT S.release('%s', '%s', '', false, 0, false, 0)`, name, owner)
	}
	idle := func(name string) string { return fmt.Sprintf(`UPDATE S.locks SET waited = 0 WHERE name = '%s'`, name) }
	// steps are most of those that a mutex sees. They begin and end with a free lock.
	steps := func(name string) []string {
		return []string{
			ask(name, "a", true), ask(name, "b", true),
			handOn(name, "a"), handOn(name, "b"),
			ask(name, "c", false), ask(name, "c", true),
			fmt.Sprintf(`SELECT S.await('%s', 'c', 60000000, 0, 0)`, name),
			fmt.Sprintf(`SELECT S.await('%s', 'c', 80000000, 0, 0)`, name), // extends the place
			fmt.Sprintf(`SELECT S.renew(encode('%s', 'hex'), 'a', '60000000', false)`, name),
			fmt.Sprintf(`SELECT S.reserve('%s', 'a', 0, 1, false)`, name),
			fmt.Sprintf(`SELECT S.take_signal('%s', 'a', 1)`, name),
			release(name, "c"), release(name, "a"), release(name, "b"),
			idle(name), // as if a second had passed
			ask(name, "d", false), release(name, "d"),
			fmt.Sprintf(`SELECT S.batch('', '', '\x%x', 'e', '\x', '60000000', '0', false)`, name),
			fmt.Sprintf(`SELECT S.batch('\x%x', 'e', '', '', '', '', '', false)`, name),
		}
	}
	read := func(step string) int {
		t.Helper()
		var text string
		if err := session.QueryRowContext(t.Context(), postgres.in(schema, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+step)).Scan(&text); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		var plans []struct {
			Plan map[string]any
		}
		if err := json.Unmarshal([]byte(text), &plans); err != nil {
			t.Fatal(err)
		}
		blocks := 0.0
		for _, of := range []string{"Shared Hit Blocks", "Shared Read Blocks"} {
			n, is := plans[0].Plan[of].(float64)
			if !is {
				t.Fatalf("%s: no %q in %s", step, of, text)
			}
			blocks += n
		}
		return int(blocks)
	}
	do(strings.Join(steps("warm"), ";")) // the session makes its plans
	reader, err := postgres.handle(t).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	for _, query := range []string{`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`, `SELECT FROM pg_class`} {
		if _, err := reader.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	do(ask("many", "a", true))
	do(ask("many", "b", true))
	for range 1000 {
		do(handOn("many", "a"))
		do(handOn("many", "b"))
	}
	do(release("many", "a"))
	do(release("many", "b"))
	// In the fewest of a few rounds: sometimes a change of a row takes a new entry in each index,
	// for which the server looks at all versions.
	const rounds = 6
	few, many := steps("few"), steps("many")
	least := make([][2]int, len(few))
	for round := range rounds {
		for i := range few {
			for j, step := range []string{few[i], many[i]} {
				if n := read(step); round == 0 || n < least[i][j] {
					least[i][j] = n
				}
			}
		}
	}
	const more = 10
	for i, n := range least {
		if many[i] != idle("many") && n[1] > n[0]+more {
			t.Errorf("%s reads %d pages, want at most %d: without the old versions it reads %d", many[i], n[1], n[0]+more, n[0])
		}
	}
}

// Places can be numbered anew: their table was emptied, or a subscriber of logical replication,
// which gets no sequences, has become the primary. Waiters are served all the same.
func TestPlacesAreNumberedAnew(t *testing.T) {
	t.Parallel()
	s, schema := postgres.newStore(t)
	number := func() {
		postgres.exec(t, postgres.handle(t), schema, `ALTER TABLE S.places ALTER COLUMN seq RESTART`)
	}
	waitInQueue := func(l store.Lease) *waiter {
		w := wait(t, s, l)
		eventually.True(t, "the waiter has its place", func() bool { return len(inspect(t, s, l.Name).Queue) == 1 })
		return w
	}
	for _, rejoin := range []bool{false, true} {
		name := fmt.Sprint("rejoin ", rejoin)
		first := lease(name)
		mustAcquire(t, s, first)
		one := waitInQueue(lease(name))
		mustRelease(t, s, first)
		one.granted(t)
		if !rejoin {
			number()
		}
		two := waitInQueue(lease(name))
		if !rejoin {
			mustRelease(t, s, one.r.Lease)
			two.granted(t)
			mustRelease(t, s, two.r.Lease)
			continue
		}
		number()
		again := store.WaitRequest{Lease: lease(name)}
		if queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: one.r.Lease}, again); err != nil || !queued {
			t.Fatalf("released and queued again: %v, %v, want true", queued, err)
		}
		three := wait(t, s, again.Lease)
		two.granted(t)
		mustRelease(t, s, two.r.Lease)
		three.granted(t)
		mustRelease(t, s, three.r.Lease)
	}
}
