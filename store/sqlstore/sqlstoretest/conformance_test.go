package sqlstoretest

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// condition is a combination of settings of the server, the driver and the pool.
type condition struct {
	name     string
	settings []string
	o        sqlstore.Options
	conns    int // of the pool; 0: no limit
}

// The store conforms with any settings of the server, the driver and the pool.
func TestPostgreSQLConforms(t *testing.T) {
	t.Parallel()
	conforms(t, postgres,
		condition{name: "defaults"},
		condition{name: "serializable", settings: []string{postgres.level("SERIALIZABLE")}},
		condition{name: "repeatable read", settings: []string{postgres.level("REPEATABLE-READ")}},
		condition{name: "without prepared statements", settings: []string{"default_query_exec_mode=exec"}},
		condition{name: "simple protocol", settings: []string{"default_query_exec_mode=simple_protocol"}},
		condition{name: "polling", o: sqlstore.Options{Polls: true}},
		condition{name: "one connection", conns: 1},
	)
}

// The store conforms on MySQL and MariaDB with any settings of the server, the session and the pool.
func TestMySQLConforms(t *testing.T) {
	onMySQL(t, func(t *testing.T, on *bed) {
		t.Parallel()
		conforms(t, on,
			condition{name: "defaults"},
			condition{name: "serializable", settings: []string{on.level("SERIALIZABLE")}},
			condition{name: "read uncommitted", settings: []string{on.level("READ-UNCOMMITTED")}},
			condition{name: "no autocommit", settings: []string{"autocommit=0"}},
			condition{name: "other modes", settings: []string{setting("sql_mode", "'ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH'"), "time_zone=%27-11:00%27", "clientFoundRows=true"}},
			condition{name: "limits of a session", settings: []string{"completion_type=1", "sql_select_limit=1", "sql_safe_updates=1"}},
			condition{name: "one connection", conns: 1},
		)
	})
}

func conforms(t *testing.T, on *bed, conditions ...condition) {
	for _, c := range conditions {
		c.o.Timeout = patience
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			schema := on.newSchema(t)
			one := func(t *testing.T) *store.Store {
				if c.conns == 0 {
					return on.open(t, schema, c.o, c.settings...)
				}
				db := on.handle(t, c.settings...)
				db.SetMaxOpenConns(c.conns)
				o := c.o
				o.Schema = schema
				s, err := sqlstore.New(t.Context(), db, on.dialect, &o)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			storetest.Run(t, one, storetest.Options{Second: one, Observed: true})
		})
	}
}

// Each verb meets each fault.
func TestFaults(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		o := sqlstore.Options{Timeout: patience}
		schema := on.newSchema(t)
		storetest.RunFaults(t, func(t *testing.T) (*store.Store, storetest.Link) {
			p := faultproxy.New(t, on.server.Addr)
			behind := *on.server
			behind.Addr = p.Addr()
			return on.at(&behind).open(t, schema, o), p
		}, storetest.Options{Second: func(t *testing.T) *store.Store { return on.open(t, schema, o) }})
	})
}
