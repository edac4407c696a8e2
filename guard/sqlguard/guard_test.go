package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/guard/sqlguard"
)

// These tests need no server. Those on PostgreSQL, MariaDB and SQLite are in the module
// guard/guardtest, which has the drivers.

// unused fails the test when anything is sent.
type unused struct{ t *testing.T }

func (u unused) BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error) {
	u.t.Error("a transaction was begun")
	return nil, errors.New("unused")
}

func (u unused) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	u.t.Error("something was sent")
	return nil, errors.New("unused")
}

func (u unused) QueryRowContext(context.Context, string, ...any) *sql.Row {
	u.t.Error("something was asked")
	return nil
}

func TestBadCallsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	ctx := t.Context()
	db := unused{t}
	guard, err := sqlguard.New(sqlguard.PostgreSQL, nil)
	if err != nil {
		t.Fatal(err)
	}
	tx := func(resource string, token fence.Token) error {
		return guard.Tx(ctx, db, resource, token, func(*sql.Tx) error {
			t.Error("the function ran")
			return nil
		})
	}
	made := func(d sqlguard.Dialect, table string) error {
		_, err := sqlguard.New(d, &sqlguard.Options{Table: table})
		return err
	}
	_, highest := guard.Highest(ctx, db, "")
	row := func(change func(*sqlguard.Row)) error {
		r := sqlguard.Row{Table: "app.invoices", Key: map[string]any{"id": 1}, Column: "token"}
		change(&r)
		return sqlguard.PostgreSQL.UpdateRow(ctx, db, r, 1, "")
	}
	plain := sqlguard.Row{Table: "t", Key: map[string]any{"id": 1}, Column: "c"}
	for name, err := range map[string]error{
		"no dialect":         made(0, ""),
		"unknown dialect":    made(9, ""),
		"table with a space": made(sqlguard.MySQL, "my fences"),
		"table with a quote": made(sqlguard.MySQL, "fences;--"),
		"table with a digit": made(sqlguard.MySQL, "1fences"),
		"empty schema":       made(sqlguard.MySQL, ".fences"),
		"no resource":        tx("", 1),
		"long resource":      tx(strings.Repeat("x", sqlguard.MaxResource+1), 1),
		"resource, no UTF-8": tx("\xff", 1),
		"resource with zero": tx("a\x00b", 1),
		"token zero":         tx("r", 0),
		"token too large":    tx("r", fence.Max+1),
		"nothing to look up": highest,
		"row without table":  row(func(r *sqlguard.Row) { r.Table = "" }),
		"row without column": row(func(r *sqlguard.Row) { r.Column = "" }),
		"row without key":    row(func(r *sqlguard.Row) { r.Key = nil }),
		"row with a bad key": row(func(r *sqlguard.Row) { r.Key = map[string]any{"id = 1 OR 1": 1} }),
		"row, token zero":    sqlguard.MySQL.UpdateRow(ctx, db, plain, 0, ""),
		"row, no dialect":    sqlguard.Dialect(0).UpdateRow(ctx, db, plain, 1, ""),
		"claim by nobody":    sqlguard.MySQL.ClaimRow(ctx, db, plain, ""),
		"update by nobody":   sqlguard.MySQL.UpdateOwned(ctx, db, plain, "", "c = 1"),
	} {
		if !errors.Is(err, sqlguard.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A commit of unknown outcome gives ErrAmbiguous.
func TestCommitOfUnknownOutcomeIsSaidToBe(t *testing.T) {
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
	err = guard.Tx(t.Context(), db, "r", 1, func(tx *sql.Tx) error { return tx.Commit() }) // which it must not
	if !errors.Is(err, sqlguard.ErrAmbiguous) {
		t.Errorf("got %v", err)
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer os.RemoveAll(dir)
	// Any driver of PostgreSQL, MySQL or SQLite.
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer db.Close()
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, `CREATE TABLE invoices (id INTEGER PRIMARY KEY, state TEXT); INSERT INTO invoices VALUES (42, 'open')`); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}

	guard, err := sqlguard.New(sqlguard.SQLite, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	if err := guard.CreateTable(ctx, db); err != nil { // or run guard.Schema() yourself
		fmt.Fprintln(os.Stderr, err)
		return
	}
	set := func(token fence.Token, state string) error { // token: from lease.Token()
		return guard.Tx(ctx, db, "invoices/42", token, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE invoices SET state = ? WHERE id = 42`, state)
			return err
		})
	}
	fmt.Println(set(34, "paid"))
	err = set(33, "cancelled") // by a holder that was paused
	fmt.Println(errors.Is(err, fence.ErrStale))
	fmt.Println(err)
	// Output:
	// <nil>
	// true
	// "invoices/42" refuses fencing token 33: it has seen 34, so the lease is over and a later holder has written
}

func ExampleDialect_UpdateRow() {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each would have a memory of its own
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, `CREATE TABLE invoices (id INTEGER PRIMARY KEY, state TEXT, token INTEGER); INSERT INTO invoices VALUES (42, 'open', NULL)`); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}

	row := sqlguard.Row{Table: "invoices", Key: map[string]any{"id": 42}, Column: "token"}
	fmt.Println(sqlguard.SQLite.UpdateRow(ctx, db, row, 34, "state = ?", "paid"))
	fmt.Println(sqlguard.SQLite.UpdateRow(ctx, db, row, 33, "state = ?", "cancelled"))
	// Output:
	// <nil>
	// "invoices[id=42]" refuses fencing token 33: it has seen 34, so the lease is over and a later holder has written
}

// With a lock that has no tokens: the owner stands in the row.
func ExampleDialect_UpdateOwned() {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, `CREATE TABLE invoices (id INTEGER PRIMARY KEY, state TEXT, owner TEXT); INSERT INTO invoices VALUES (42, 'open', NULL)`); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}

	row := sqlguard.Row{Table: "invoices", Key: map[string]any{"id": 42}, Column: "owner"}
	for _, owner := range []string{"first", "second"} { // from lease.Owner(), when the lease begins
		if err := sqlguard.SQLite.ClaimRow(ctx, db, row, owner); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
	}
	fmt.Println(sqlguard.SQLite.UpdateOwned(ctx, db, row, "second", "state = ?", "paid"))
	fmt.Println(sqlguard.SQLite.UpdateOwned(ctx, db, row, "first", "state = ?", "cancelled"))
	// Output:
	// <nil>
	// invoices[id=42] belongs to "second" now, so "first" may not change it
}
