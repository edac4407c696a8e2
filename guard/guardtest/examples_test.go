package guardtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/guard/sqlguard"
)

// The examples of package sqlguard, with a database and with what they print: that package
// imports no driver.

func Example_sqlTransaction() {
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

func Example_sqlRow() {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would have its own database
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
