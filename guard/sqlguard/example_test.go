package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"log"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/guard/sqlguard"
)

// The examples use these. They run, with a driver, in module guard/guardtest.
var (
	ctx   context.Context
	db    *sql.DB // of any driver for PostgreSQL, MySQL or SQLite
	lease *leasehold.Lease
)

func Example() {
	guard, err := sqlguard.New(sqlguard.PostgreSQL, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := guard.CreateTable(ctx, db); err != nil { // or run guard.Schema() yourself
		log.Fatal(err)
	}
	err = guard.Tx(ctx, db, "invoices/42", lease.Token(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE invoices SET state = $1 WHERE id = 42`, "paid")
		return err
	})
	if errors.Is(err, fence.ErrStale) {
		log.Fatal("nothing was changed: the lease is over, and a later holder has written")
	}
}

func ExampleDialect_UpdateRow() {
	row := sqlguard.Row{Table: "invoices", Key: map[string]any{"id": 42}, Column: "token"}
	err := sqlguard.PostgreSQL.UpdateRow(ctx, db, row, lease.Token(), "state = $1", "paid")
	if errors.Is(err, fence.ErrStale) {
		log.Fatal("the row was not changed: a later holder has written it")
	}
}
