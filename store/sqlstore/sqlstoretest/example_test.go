package sqlstoretest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// A lock around work on data elsewhere.
func Example() {
	ctx := context.Background()
	// In main: import _ "github.com/jackc/pgx/v5/stdlib".
	st, err := sqlstore.Open(ctx, sqlstore.PostgreSQL, "pgx", "postgres://app:secret@db/app", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	locks := leasehold.New(st, nil)
	err = locks.Mutex("reports/nightly").Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
		fmt.Println("token", l.Token())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}

// transfer changes data in the database of the locks while it holds the lock.
func transfer(ctx context.Context, db *sql.DB, st *sqlstore.Store, l *leasehold.Lease) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := st.Hold(ctx, tx, l); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE accounts SET amount = amount + 1"); err != nil {
		return err
	}
	return tx.Commit()
}

// transferWithPgx is transfer for a connection of pgx itself.
func transferWithPgx(ctx context.Context, conn *pgx.Conn, st *sqlstore.Store, l *leasehold.Lease) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		query, args := st.HoldQuery(l)
		if _, err := tx.Exec(ctx, query, args...); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE accounts SET amount = amount + 1")
		return err
	})
}

// Clients that compete change data under the lock, through both kinds of
// transactions, and nothing is lost.
func TestClientsShareADatabase(t *testing.T) {
	t.Parallel()
	schema := newSchema(t, postgres)
	db := database(t, dsn(postgres, "search_path="+schema))
	for _, query := range []string{"CREATE TABLE accounts (amount int)", "INSERT INTO accounts VALUES (0)"} {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	const clients, rounds = 4, 10
	var all sync.WaitGroup
	for i := range clients {
		st := open(t, dsn(postgres), schema, sqlstore.Options{})
		locks := leasehold.New(st, nil)
		conn, err := pgx.Connect(t.Context(), dsn(postgres, "search_path="+schema))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		all.Go(func() {
			for range rounds {
				err := locks.Mutex("accounts").Do(t.Context(), func(ctx context.Context, l *leasehold.Lease) error {
					if i%2 == 0 {
						return transfer(ctx, db, st, l)
					}
					return transferWithPgx(ctx, conn, st, l)
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	var amount int
	if err := db.QueryRowContext(t.Context(), "SELECT amount FROM accounts").Scan(&amount); err != nil || amount != clients*rounds {
		t.Errorf("%d, want %d: %v", amount, clients*rounds, err)
	}
	st := open(t, dsn(postgres), schema, sqlstore.Options{})
	l, err := leasehold.New(st, nil).Mutex("accounts").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := transfer(t.Context(), db, st, l); !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("a transaction with a lease that was released: %v", err)
	}
}
