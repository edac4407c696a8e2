package sqlguard_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/guard/sqlguard"
)

// These tests need no database. The tests on PostgreSQL, MariaDB and SQLite are in the module
// guard/guardtest, which has the drivers.

// unused is a database that fails the test if it is used.
type unused struct{ t *testing.T }

func (u unused) BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error) {
	u.t.Error("a transaction was begun, want none")
	return nil, errors.New("unused")
}

func (u unused) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	u.t.Error("a statement was sent, want none")
	return nil, errors.New("unused")
}

func (u unused) QueryRowContext(context.Context, string, ...any) *sql.Row {
	u.t.Error("a query was sent, want none")
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
			t.Error("the function ran, want it not to")
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
		"no dialect":           made(0, ""),
		"unknown dialect":      made(9, ""),
		"table with a space":   made(sqlguard.MySQL, "my fences"),
		"table with a quote":   made(sqlguard.MySQL, "fences;--"),
		"table with a digit":   made(sqlguard.MySQL, "1fences"),
		"empty schema":         made(sqlguard.MySQL, ".fences"),
		"no resource":          tx("", 1),
		"long resource":        tx(strings.Repeat("x", sqlguard.MaxResource+1), 1),
		"resource, no UTF-8":   tx("\xff", 1),
		"resource with zero":   tx("a\x00b", 1),
		"token zero":           tx("r", 0),
		"token too large":      tx("r", fence.Max+1),
		"Highest, no resource": highest,
		"row without table":    row(func(r *sqlguard.Row) { r.Table = "" }),
		"row without column":   row(func(r *sqlguard.Row) { r.Column = "" }),
		"row without key":      row(func(r *sqlguard.Row) { r.Key = nil }),
		"row with a bad key":   row(func(r *sqlguard.Row) { r.Key = map[string]any{"id = 1 OR 1": 1} }),
		"row, token zero":      sqlguard.MySQL.UpdateRow(ctx, db, plain, 0, ""),
		"row, no dialect":      sqlguard.Dialect(0).UpdateRow(ctx, db, plain, 1, ""),
	} {
		if !errors.Is(err, sqlguard.ErrInvalid) {
			t.Errorf("%s: %v, want %v", name, err, sqlguard.ErrInvalid)
		}
	}
}
