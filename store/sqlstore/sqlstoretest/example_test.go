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

// A lock in MySQL or MariaDB.
func Example_mySQL() {
	ctx := context.Background()
	// In main: import _ "github.com/go-sql-driver/mysql".
	st, err := store.Open(ctx, "mysql://app:secret@db", nil)
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

// A lock around work on data elsewhere.
func Example() {
	ctx := context.Background()
	// In main: import _ "github.com/jackc/pgx/v5/stdlib".
	st, err := sqlstore.Open(ctx, "postgres://app:secret@db/app", nil)
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
func transfer(ctx context.Context, db *sql.DB, st *store.Store, l *leasehold.Lease) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := sqlstore.Hold(ctx, st, tx, l); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE accounts SET amount = amount + 1"); err != nil {
		return err
	}
	return tx.Commit()
}

// transferWithPgx is transfer for a connection of pgx itself.
func transferWithPgx(ctx context.Context, conn *pgx.Conn, st *store.Store, l *leasehold.Lease) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		query, args, err := sqlstore.HoldQuery(st, l)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, query, args...); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE accounts SET amount = amount + 1")
		return err
	})
}

// Clients that contend for a lock change data under it, through all kinds of transactions, and no
// change is lost.
func TestClientsShareADatabase(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		schema := on.newSchema(t)
		db := on.handle(t, on.current(schema))
		for _, query := range []string{"CREATE TABLE S.accounts (amount int)", "INSERT INTO S.accounts VALUES (0)"} {
			on.exec(t, db, schema, query)
		}
		const clients, rounds = 4, 10
		var all sync.WaitGroup
		for i := range clients {
			st := on.open(t, schema, sqlstore.Options{})
			locks := leasehold.New(st, nil)
			work := func(ctx context.Context, l *leasehold.Lease) error { return transfer(ctx, db, st, l) }
			if on == postgres && i%2 == 0 {
				conn, err := pgx.Connect(t.Context(), on.dsn(on.current(schema)))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close(context.Background()) })
				work = func(ctx context.Context, l *leasehold.Lease) error { return transferWithPgx(ctx, conn, st, l) }
			}
			all.Go(func() {
				for range rounds {
					if err := locks.Mutex("accounts").Do(t.Context(), work); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if amount := on.number(t, db, schema, "SELECT amount FROM S.accounts"); amount != clients*rounds {
			t.Errorf("the amount is %d, want %d", amount, clients*rounds)
		}
		st := on.open(t, schema, sqlstore.Options{})
		l, err := leasehold.New(st, nil).Mutex("accounts").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := transfer(t.Context(), db, st, l); !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("a transaction with a lease that was released: %v, want %v", err, store.ErrNotHeld)
		}
	})
}
