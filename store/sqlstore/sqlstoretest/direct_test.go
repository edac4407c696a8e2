package sqlstoretest

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
)

// A waiter whose connection leads to the server itself needs no other one to be woken. With
// something in between, it takes others to learn whether sessions last.
func TestWaiterOfADirectConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		on   func(t *testing.T) *bed
		more bool
	}{
		{"direct", func(*testing.T) *bed { return postgres }, false},
		{"proxy", func(t *testing.T) *bed { return postgres.through(faultproxy.New(t, postgres.server.Addr)) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			other, schema := postgres.newStore(t)
			s := openURL(t, c.on(t).dsn("schema="+schema, postgres.named(schema)))
			mustAcquire(t, other, lease("x"))
			wait(t, s, lease("x"))
			db := postgres.handle(t)
			eventually.True(t, "the waiter has a signal", func() bool {
				return postgres.number(t, db, schema, `SELECT count(*) FROM S.places WHERE signal <> 0`) == 1
			})
			if n := postgres.number(t, db, schema, `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'S'`); n > 1 != c.more {
				t.Errorf("the store of the waiter has %d connections, want more than one: %v", n, c.more)
			}
		})
	}
}
