package recordstore_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A store passes the suite whether its engine dates records, pushes them, or does neither.
func TestConformance(t *testing.T) {
	for name, kind := range map[string]*server{
		"dates and pushes": {dates: true, pushes: true, class: store.CrashSafe},
		"dates":            {dates: true},
		"pushes":           {pushes: true},
		"neither":          {class: store.Consensus},
		"forgets":          {dates: true, pushes: true, forgets: true},
	} {
		t.Run(name, func(t *testing.T) {
			var srv *server
			second := func(*testing.T) *store.Store {
				s := recordstore.New(srv.driver(), &recordstore.Options{Poll: 5 * time.Millisecond})
				recordstore.SetClock(s, virtual.Clock())
				return s
			}
			storetest.Run(t, func(t *testing.T) *store.Store {
				srv = &server{dates: kind.dates, pushes: kind.pushes, forgets: kind.forgets, class: kind.class}
				return second(t)
			}, storetest.Options{Second: second, Virtual: true, Observed: !kind.dates})
		})
	}
}
