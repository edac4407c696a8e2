package guardtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/guard/sqlguard"
)

// refused fails the test unless err says that offered was refused because of highest.
func refused(t *testing.T, err error, resource string, offered, highest fence.Token) {
	t.Helper()
	var stale *fence.StaleError
	want := fence.StaleError{Resource: resource, Offered: offered, Highest: highest}
	if !errors.Is(err, fence.ErrStale) || !errors.As(err, &stale) || *stale != want {
		t.Errorf("got %v, want: %v", err, &want)
	}
}

func TestSQLRefusesOlderTokens(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		j := d.journal(t)
		ctx := t.Context()
		write := func(resource string, token fence.Token) error {
			return d.guard.Tx(ctx, d, resource, token, func(tx *sql.Tx) error { return j.add(ctx, tx, resource, token) })
		}
		for _, token := range []fence.Token{5, 5, fence.Max - 1, fence.Max - 1} {
			if err := write("r", token); err != nil {
				t.Fatalf("token %v: %v", token, err)
			}
		}
		refused(t, write("r", 5), "r", 5, fence.Max-1)
		if err := write("r", fence.Max); err != nil {
			t.Error(err)
		}
		refused(t, write("r", fence.Max-1), "r", fence.Max-1, fence.Max)
		if got, want := fmt.Sprint(j.read(t, "r")), fmt.Sprint([]fence.Token{5, 5, fence.Max - 1, fence.Max - 1, fence.Max}); got != want {
			t.Errorf("written: %s, want %s", got, want)
		}
		// Names that some databases treat as equal.
		for _, other := range []string{"R", "r ", "ŕ", "r%"} {
			if err := d.guard.Tx(ctx, d, other, 1, func(*sql.Tx) error { return nil }); err != nil {
				t.Errorf("resource %q: %v", other, err)
			}
		}
		for resource, want := range map[string]fence.Token{"r": fence.Max, "R": 1, "unused": 0} {
			if got, err := d.guard.Highest(ctx, d, resource); got != want || err != nil {
				t.Errorf("Highest(%q) = %v, %v, want %v", resource, got, err, want)
			}
		}
	})
}

// A failed transaction leaves nothing behind, not even the larger token.
func TestSQLRollsBackTheTokenToo(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		j := d.journal(t)
		ctx := t.Context()
		mine := errors.New("mine")
		err := d.guard.Tx(ctx, d, "r", 9, func(tx *sql.Tx) error {
			return errors.Join(j.add(ctx, tx, "r", 9), mine)
		})
		if !errors.Is(err, mine) || errors.Is(err, sqlguard.ErrAmbiguous) {
			t.Errorf("got %v, want the error of the function", err)
		}
		func() {
			defer func() {
				if recover() != "on purpose" {
					t.Error("no panic, or another one, want that of the function")
				}
			}()
			d.guard.Tx(ctx, d, "r", 9, func(tx *sql.Tx) error {
				j.add(ctx, tx, "r", 9)
				panic("on purpose")
			})
		}()
		if err := d.guard.Tx(ctx, d, "r", 8, func(*sql.Tx) error { return nil }); err != nil {
			t.Errorf("a smaller token after the larger one was rolled back: %v, want no error", err)
		}
		if got := j.read(t, "r"); len(got) != 0 {
			t.Errorf("written: %v, want nothing", got)
		}
	})
}

// risen returns an error if tokens are not in increasing order.
func risen(tokens []fence.Token) error {
	if !slices.IsSorted(tokens) {
		return fmt.Errorf("written: %v, want no smaller token after a larger one", tokens)
	}
	return nil
}

// The guard works for several writers of a new resource at once, when there is no row to
// lock yet.
func TestFirstWritersOfAResourceAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		j := d.journal(t)
		ctx := t.Context()
		const rounds, writers = 5, 4
		for round := range rounds {
			resource := fmt.Sprint("r", round)
			var admitted [writers + 1]bool
			var all sync.WaitGroup
			start := make(chan struct{})
			for n := range writers {
				token := fence.Token(n + 1)
				all.Go(func() {
					<-start
					err := d.guard.Tx(ctx, d, resource, token, func(tx *sql.Tx) error { return j.add(ctx, tx, resource, token) })
					if err != nil && !errors.Is(err, fence.ErrStale) {
						t.Errorf("token %v: %v", token, err)
					}
					admitted[token] = err == nil
				})
			}
			close(start)
			all.Wait()
			written := j.read(t, resource)
			if err := risen(written); err != nil {
				t.Error(err)
			}
			for token := fence.Token(1); token <= writers; token++ {
				if admitted[token] != slices.Contains(written, token) {
					t.Errorf("token %v: admitted %v, and written are %v, want it written if and only if admitted", token, admitted[token], written)
				}
			}
			if !admitted[writers] {
				t.Error("the largest token was refused, want it accepted")
			}
		}
	})
}

// The guard is needed: reading the token and then writing, in one transaction,
// accepts a stale write at the default isolation levels.
func TestReadingTheTokenBeforeWritingIsNotEnough(t *testing.T) {
	on(t, slices.DeleteFunc(slices.Clone(usual), flavour.file), func(t *testing.T, d *database) {
		j := d.journal(t)
		ctx := t.Context()
		begin := func(token fence.Token) *sql.Tx {
			tx, err := d.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { tx.Rollback() })
			highest, err := d.guard.Highest(ctx, tx, "r")
			if err == nil {
				_, err = fence.Admit("r", highest, token)
			}
			if err != nil {
				t.Fatal(err)
			}
			return tx
		}
		old := begin(1)
		for token, tx := range map[fence.Token]*sql.Tx{2: begin(2)} {
			if err := errors.Join(j.add(ctx, tx, "r", token), d.guard.AdmitTx(ctx, tx, "r", token), tx.Commit()); err != nil {
				t.Fatal(err)
			}
		}
		// After the write of 2: the token was read too early.
		if _, err := old.ExecContext(ctx, d.rebind(`INSERT INTO `+j.name+` (resource, seq, token) VALUES (?, ?, ?)`), "r", 2, 1); err != nil {
			t.Fatal(err)
		}
		if err := old.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := risen(j.read(t, "r")); err == nil {
			t.Error("no stale write was accepted, want one: else this test shows nothing")
		}
	})
}

// Transactions of one resource run one after the other: a larger token waits, and
// a smaller one that waited is refused.
func TestSQLWritersWaitForEachOther(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		j := d.journal(t)
		ctx := t.Context()
		entered, goOn := make(chan struct{}), make(chan struct{})
		errs := map[fence.Token]error{}
		var mu sync.Mutex
		var all sync.WaitGroup
		start := func(token fence.Token, inside func()) {
			all.Go(func() {
				err := d.guard.Tx(ctx, d, "r", token, func(tx *sql.Tx) error {
					inside()
					return j.add(ctx, tx, "r", token)
				})
				mu.Lock()
				defer mu.Unlock()
				errs[token] = err
			})
		}
		finished := false
		start(5, func() { close(entered); <-goOn; finished = true })
		<-entered
		start(6, func() {
			if !finished {
				t.Error("6 was admitted before 5 had ended, want it to wait")
			}
		})
		start(4, func() { t.Error("4 was admitted after 5, want it refused") })
		d.waiters(t, d.table("fences"), 2)
		close(goOn)
		all.Wait()
		if errs[5] != nil || errs[6] != nil || !errors.Is(errs[4], fence.ErrStale) {
			t.Errorf("got %v, want only 4 refused", errs)
		}
		if got := fmt.Sprint(j.read(t, "r")); got != "[5 6]" {
			t.Errorf("written: %s, want [5 6]", got)
		}
	})
}

// AdmitTx should be the first statement of a transaction. If it is not, the
// database may show the state at the start of the transaction, which the guard
// must not rely on. (Not in a file, where a transaction that has read keeps
// others from writing.)
func TestSQLCheckInATransactionThatBeganEarlier(t *testing.T) {
	on(t, slices.DeleteFunc(slices.Clone(flavours), flavour.file), func(t *testing.T, d *database) {
		j := d.journal(t)
		ctx := t.Context()
		write := func(token fence.Token) error {
			return d.guard.Tx(ctx, d, "r", token, func(tx *sql.Tx) error { return j.add(ctx, tx, "r", token) })
		}
		if err := write(5); err != nil {
			t.Fatal(err)
		}
		err := d.inTx(ctx, func(tx *sql.Tx) error {
			if _, err := d.guard.Highest(ctx, tx, "another"); err != nil {
				return err
			}
			if err := write(7); err != nil {
				t.Fatal(err)
			}
			if err := d.guard.AdmitTx(ctx, tx, "r", 6); err != nil {
				return err
			}
			return j.add(ctx, tx, "r", 6)
		})
		if err == nil {
			t.Error("an older token was accepted, want it refused")
		}
		if d.usualServer() {
			refused(t, err, "r", 6, 7)
		}
		if err := risen(j.read(t, "r")); err != nil {
			t.Error(err)
		}
	})
}

func TestSQLWaitEndsWithItsContext(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		ctx, cancel := context.WithCancelCause(t.Context())
		canceled := errors.New("canceled by the test")
		err := d.guard.Tx(t.Context(), d, "r", 5, func(*sql.Tx) error {
			var waiting sync.WaitGroup
			waiting.Go(func() {
				err := d.guard.Tx(ctx, d, "r", 6, func(*sql.Tx) error {
					t.Error("6 was admitted before 5 had ended, want it to wait")
					return nil
				})
				if err == nil || errors.Is(err, fence.ErrStale) || errors.Is(err, sqlguard.ErrAmbiguous) {
					t.Errorf("the wait ended with %v, want an error of the context", err)
				}
			})
			d.waiters(t, d.table("fences"), 1)
			cancel(canceled)
			waiting.Wait()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.guard.Highest(t.Context(), d, "r"); got != 5 || err != nil {
			t.Errorf("Highest = %v, %v, want 5 and no error", got, err)
		}
	})
}

func TestTableCanBeCreatedByManyAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		guard, err := sqlguard.New(d.dialect, &sqlguard.Options{Table: d.table("many")})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if err := guard.CreateTable(t.Context(), d); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if err := guard.Tx(t.Context(), d, "r", 1, func(*sql.Tx) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}

// A guard's table can remember tokens for a resource that is not in the database.
func TestSQLMemory(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		m := d.guard.Memory(d)
		for _, token := range []fence.Token{3, 3, 4} {
			if err := m.Admit(t.Context(), "r", token); err != nil {
				t.Fatal(err)
			}
		}
		refused(t, m.Admit(t.Context(), "r", 3), "r", 3, 4)
		for resource, want := range map[string]fence.Token{"r": 4, "never used": 0} {
			if highest, err := m.Highest(t.Context(), resource); highest != want || err != nil {
				t.Errorf("the largest token of %q: %v, %v, want %v", resource, highest, err, want)
			}
		}
	})
}

// A commit of unknown outcome gives ErrAmbiguous.
func TestCommitOfUnknownOutcomeIsReported(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "data.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	guard, err := sqlguard.New(sqlguard.SQLite, nil)
	if err == nil {
		err = guard.CreateTable(t.Context(), db)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = guard.Tx(t.Context(), db, "r", 1, func(tx *sql.Tx) error { return tx.Commit() }) // which the function must not do
	if !errors.Is(err, sqlguard.ErrAmbiguous) {
		t.Errorf("got %v, want %v", err, sqlguard.ErrAmbiguous)
	}
}
