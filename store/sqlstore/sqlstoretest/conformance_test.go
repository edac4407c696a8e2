package sqlstoretest

import (
	"testing"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// The store conforms however the server, the driver and the pool are set.
func TestPostgreSQLConforms(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings []string
		o        sqlstore.Options
		conns    int // of the pool; 0: no limit
	}{
		{name: "defaults"},
		{name: "serializable", settings: []string{setting("default_transaction_isolation", "serializable")}},
		{name: "repeatable read", settings: []string{setting("default_transaction_isolation", "repeatable read")}},
		{name: "simple protocol", settings: []string{"default_query_exec_mode=simple_protocol"}},
		{name: "polling", o: sqlstore.Options{Connections: -1}},
		{name: "one connection", conns: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			schema := newSchema(t, postgres)
			one := func(t *testing.T) store.Store {
				if c.conns == 0 {
					return open(t, dsn(postgres, c.settings...), schema, c.o)
				}
				db := database(t, dsn(postgres, c.settings...))
				db.SetMaxOpenConns(c.conns)
				o := c.o
				o.Schema = schema
				s, err := sqlstore.New(t.Context(), db, sqlstore.PostgreSQL, &o)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			storetest.Run(t, one, storetest.Options{Second: one})
		})
	}
}
