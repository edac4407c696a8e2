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

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/guard/sqlguard"
)

// rows makes a table with a key of two columns and two rows, and returns one of them. It
// fails the test if the other is changed.
func (d *database) rows(t *testing.T) sqlguard.Row {
	t.Helper()
	table := d.table("data")
	d.exec(t, `CREATE TABLE `+table+` (tenant INT NOT NULL, id INT NOT NULL, content VARCHAR(200) NOT NULL, token BIGINT, PRIMARY KEY (tenant, id))`)
	d.exec(t, `INSERT INTO `+table+` (tenant, id, content) VALUES (1, 1, ''), (1, 2, 'untouched')`)
	t.Cleanup(func() {
		var content string
		var token any
		err := d.QueryRowContext(context.Background(), `SELECT content, token FROM `+table+` WHERE id = 2`).Scan(&content, &token)
		if err != nil || content != "untouched" || token != nil {
			t.Errorf("the other row is %q, %v (%v), want it unchanged", content, token, err)
		}
	})
	return sqlguard.Row{Table: table, Key: map[string]any{"tenant": 1, "id": 1}, Column: "token"}
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
		row := d.rows(t)
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
		row := d.rows(t)
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
		row := d.rows(t)
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
