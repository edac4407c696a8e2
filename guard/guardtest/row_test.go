package guardtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/guard/sqlguard"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// rows makes a table with a key of two columns and two rows, and returns one of them. It
// fails the test if the other is changed.
func (d *database) rows(t *testing.T, column string) sqlguard.Row {
	t.Helper()
	table := d.table("data")
	d.exec(t, `CREATE TABLE `+table+` (tenant INT NOT NULL, id INT NOT NULL, content VARCHAR(200) NOT NULL, token BIGINT, owner VARCHAR(100), PRIMARY KEY (tenant, id))`)
	d.exec(t, `INSERT INTO `+table+` (tenant, id, content) VALUES (1, 1, ''), (1, 2, 'untouched')`)
	t.Cleanup(func() {
		var content string
		var token, owner any
		err := d.QueryRowContext(context.Background(), `SELECT content, token, owner FROM `+table+` WHERE id = 2`).Scan(&content, &token, &owner)
		if err != nil || content != "untouched" || token != nil || owner != nil {
			t.Errorf("the other row is %q, %v, %v (%v), want it unchanged", content, token, owner, err)
		}
	})
	return sqlguard.Row{Table: table, Key: map[string]any{"tenant": 1, "id": 1}, Column: column}
}

func (d *database) content(t *testing.T, row sqlguard.Row) (content string) {
	t.Helper()
	if err := d.QueryRowContext(t.Context(), `SELECT content FROM `+row.Table+` WHERE id = 1`).Scan(&content); err != nil {
		t.Fatal(err)
	}
	return content
}

// inTx runs fn in a transaction that the guard has not begun.
func (d *database) inTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func TestRowRefusesOlderTokens(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		row := d.rows(t, "token")
		ctx := t.Context()
		set := d.rebind("content = ?")
		const first, second fence.Token = 1_795_275_000_000_001, 1_795_275_000_000_002
		// Each twice: for the second, MySQL reports no changed rows.
		for _, token := range []fence.Token{first, first, second, second} {
			if err := d.dialect.UpdateRow(ctx, d.DB, row, token, set, token.String()); err != nil {
				t.Fatalf("token %v: %v", token, err)
			}
			err := d.inTx(ctx, func(tx *sql.Tx) error { return d.dialect.UpdateRow(ctx, tx, row, token, "") })
			if err != nil {
				t.Fatalf("token %v, in a transaction: %v", token, err)
			}
		}
		refused(t, d.dialect.UpdateRow(ctx, d.DB, row, first, set, "old"), row.String(), first, second)
		refused(t, d.inTx(ctx, func(tx *sql.Tx) error {
			return d.dialect.UpdateRow(ctx, tx, row, first, set, "old")
		}), row.String(), first, second)
		if got := d.content(t, row); got != second.String() {
			t.Errorf("the row has %q, want %q", got, second.String())
		}

		missing := row
		missing.Key = map[string]any{"tenant": 1, "id": 3}
		if err := d.dialect.UpdateRow(ctx, d.DB, missing, first, set, "x"); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("a row that does not exist: %v, want %v", err, sql.ErrNoRows)
		}
		several := sqlguard.Row{Table: row.Table, Key: map[string]any{"tenant": 1}, Column: "token"}
		err := d.inTx(ctx, func(tx *sql.Tx) error { return d.dialect.UpdateRow(ctx, tx, several, second, set, "x") })
		if err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "2 rows") {
			t.Errorf("a key that matches two rows: %v, want an error with \"2 rows\"", err)
		}
	})
}

// Every writer adds its token to the text in the row.
func TestRowWritersAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		row := d.rows(t, "token")
		set := d.rebind("content = content || ?")
		if d.dialect == sqlguard.MySQL {
			set = "content = CONCAT(content, ?)"
		}
		const writers = 9
		var admitted [writers + 1]bool
		var all sync.WaitGroup
		start := make(chan struct{})
		for n := range writers {
			token := fence.Token(n + 1)
			all.Go(func() {
				<-start
				err := d.dialect.UpdateRow(t.Context(), d.DB, row, token, set, token.String())
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Errorf("token %v: %v", token, err)
				}
				admitted[token] = err == nil
			})
		}
		close(start)
		all.Wait()
		var want strings.Builder
		for token, ok := range admitted {
			if ok {
				fmt.Fprint(&want, token)
			}
		}
		if got := d.content(t, row); got != want.String() || !admitted[writers] {
			t.Errorf("written in the order %q, want %q, with %d at the end", got, want.String(), writers)
		}
	})
}

// The caller's transaction may have begun before a write with a larger token. (Not in a file, where a transaction that has read keeps others from writing.)
func TestRowInATransactionThatBeganEarlier(t *testing.T) {
	on(t, slices.DeleteFunc(slices.Clone(flavours), flavour.file), func(t *testing.T, d *database) {
		row := d.rows(t, "token")
		ctx := t.Context()
		set := d.rebind("content = ?")
		err := d.inTx(ctx, func(tx *sql.Tx) error {
			var content string
			if err := tx.QueryRowContext(ctx, `SELECT content FROM `+row.Table+` WHERE tenant = 1 AND id = 2`).Scan(&content); err != nil {
				return err
			}
			if err := d.dialect.UpdateRow(ctx, d.DB, row, 7, set, "new"); err != nil {
				t.Fatal(err)
			}
			return d.dialect.UpdateRow(ctx, tx, row, 6, set, "old")
		})
		if err == nil {
			t.Error("an older token was accepted, want it refused")
		}
		if d.usualServer() {
			refused(t, err, row.String(), 6, 7)
		}
		if got := d.content(t, row); got != "new" {
			t.Errorf("the row has %q, want %q", got, "new")
		}
	})
}

func TestOwnerInTheRow(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		row := d.rows(t, "owner")
		ctx := t.Context()
		set := d.rebind("content = ?")
		update := func(owner, content string) error {
			return d.dialect.UpdateOwned(ctx, d.DB, row, owner, set, content)
		}
		disowned := func(err error, owner, found string) {
			t.Helper()
			var e *sqlguard.OwnerError
			if !errors.Is(err, sqlguard.ErrNotOwner) || !errors.As(err, &e) || e.Owner != owner || e.Found != found {
				t.Errorf("got %v, want %s refused for %q", err, owner, found)
			}
		}
		disowned(update("a", "early"), "a", "")
		for _, owner := range []string{"a", "a", "b"} { // a claim may be repeated
			if err := d.dialect.ClaimRow(ctx, d.DB, row, owner); err != nil {
				t.Fatal(err)
			}
		}
		disowned(update("a", "late"), "a", "b")
		for range 2 { // and an update
			if err := update("b", "right"); err != nil {
				t.Error(err)
			}
		}
		if got := d.content(t, row); got != "right" {
			t.Errorf("the row has %q, want %q", got, "right")
		}
		// A claim that is itself late takes the row from the current holder, whose
		// next update is refused. The late one must read after its claim, so it loses nothing.
		if err := d.dialect.ClaimRow(ctx, d.DB, row, "a"); err != nil {
			t.Fatal(err)
		}
		disowned(update("b", "more"), "b", "a")
		missing := row
		missing.Key = map[string]any{"tenant": 2, "id": 1}
		for _, err := range []error{d.dialect.ClaimRow(ctx, d.DB, missing, "a"), d.dialect.UpdateOwned(ctx, d.DB, missing, "a", set, "x")} {
			if !errors.Is(err, sql.ErrNoRows) {
				t.Errorf("a row that does not exist: %v, want %v", err, sql.ErrNoRows)
			}
		}
	})
}

// A late write of a holder is refused when the next has claimed the row, also if both are
// goroutines of one client.
func TestOwnerInTheRowWithinAProcess(t *testing.T) {
	onEach(t, func(t *testing.T, d *database) {
		row := d.rows(t, "owner")
		ctx := t.Context()
		st := memstore.New(nil)
		defer st.Close()
		lock := leasehold.New(st, nil).Mutex("a")
		former, err := lock.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var next *leasehold.Lease
		var once sync.Once
		waits := make(chan struct{})
		waiting := lock.With(leasehold.LockOptions{OnWait: func(error) { once.Do(func() { close(waits) }) }})
		done := make(chan error)
		go func() {
			var err error
			next, err = waiting.Acquire(ctx)
			done <- err
		}()
		<-waits
		if err := d.dialect.ClaimRow(ctx, d.DB, row, former.Owner()); err != nil {
			t.Error(err)
		}
		if err := former.Release(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		defer next.Release(ctx)
		if err := d.dialect.ClaimRow(ctx, d.DB, row, next.Owner()); err != nil {
			t.Fatal(err)
		}
		if err := d.dialect.UpdateOwned(ctx, d.DB, row, former.Owner(), d.rebind("content = ?"), "late"); !errors.Is(err, sqlguard.ErrNotOwner) {
			t.Errorf("a late write of the former holder: %v, want it refused", err)
		}
	})
}
