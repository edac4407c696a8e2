package sqlstoretest

import (
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// The store reads names and holders whatever the format is in which the server writes
// bytes as text, in every protocol mode of the driver.
func TestAnyFormatOfBytes(t *testing.T) {
	t.Parallel()
	schema := newSchema(t, postgres)
	for _, mode := range []string{"exec", "simple_protocol", "cache_statement"} {
		t.Run(mode, func(t *testing.T) {
			s := open(t, dsn(postgres, setting("bytea_output", "escape"), setting("default_query_exec_mode", mode)), schema, sqlstore.Options{})
			l := lease("a\\b\x00\xff' in " + mode)
			l.Meta = store.Holder{Purpose: `a\b'"`}.Encode()
			mustAcquire(t, s, l)
			_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease(l.Name)})
			var busy *store.BusyError
			if !errors.As(err, &busy) || busy.Holder.Owner != l.Owner || busy.Holder.Purpose != `a\b'"` {
				t.Errorf("acquire a lock that is held: %v", err)
			}
			if got := inspect(t, s, l.Name); got.Holder.Purpose != `a\b'"` {
				t.Errorf("inspect: %+v", got)
			}
			list, err := s.List(t.Context(), l.Name)
			if err != nil || len(list) != 1 || list[0].Name != l.Name || list[0].Holder.Purpose != `a\b'"` {
				t.Errorf("list: %+v, %v", list, err)
			}
			mustRelease(t, s, l)
		})
	}
}
