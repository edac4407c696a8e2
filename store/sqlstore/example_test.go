package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// The program also imports a driver, such as _ "github.com/jackc/pgx/v5/stdlib".
func ExampleOpen() {
	ctx := context.Background()
	st, err := sqlstore.Open(ctx, "postgres://app@db.internal/app", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	err = leasehold.New(st, nil).Mutex("invoices/42").Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
		fmt.Println("held with token", l.Token())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}

// An administrator makes the table once, and lets the role of the program use it.
func ExampleInstall() {
	db, err := sql.Open("pgx", "postgres://admin@db.internal/app")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := sqlstore.Install(context.Background(), db, sqlstore.PostgreSQL, "", "app"); err != nil {
		log.Fatal(err)
	}
}
