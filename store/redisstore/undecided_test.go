package redisstore_test

import (
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// One of three servers is in quarantine after a restart, and another one is silent for the
// operator. The holder, which reaches it, has a majority all the same, and renews its lease. The
// operator is shown that the lease is undecided, and can break it. If too few servers answer to the
// break, its error says so.
func TestUndecidedOnServers(t *testing.T) {
	t.Parallel()
	kinds := breakables()
	kinds["mutex"] = [2]store.Lease{patientWaiter("mutex"), patientWaiter("mutex")}
	for what, c := range kinds {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartN(t, 3)
			for _, server := range servers {
				server.Declare()
			}
			proxies := behind(t, servers)
			s, operator := open(t, addrs(servers), patient()), openVia(t, servers, proxies)
			other := c[0]
			other.Name, other.Owner = "other", store.NewOwner()
			acquireOnAll(t, s, other)
			breakNow(t, operator, breakOf(t, operator, other)) // so that the servers have the script
			r := acquireOnAll(t, s, c[0])
			b := breakOf(t, operator, r)
			proxies[2].RefuseNew()
			proxies[2].Cut()
			restart(t, servers[0])
			undecided := func(owner string) func() bool {
				return func() bool {
					st, err := operator.Inspect(t.Context(), r.Name)
					return err == nil && !st.Held && len(st.Undecided) == 1 && st.Undecided[0].Holder.Owner == owner && st.Nodes[0].Outcome == store.Quarantined
				}
			}
			eventually.True(t, "the lease is undecided", undecided(r.Owner))
			if err := s.Renew(t.Context(), []store.Lease{r})[0]; err != nil {
				t.Errorf("renewal by the holder: %v", err)
			}
			cut := proxies[1].Stats().Cut
			word := "\r\npart\r\n"
			if c[0].Kind.IsMutex() {
				word = b.Reason
			}
			proxies[1].CutReplyTo(word, 0)
			_, err := operator.BreakLease(t.Context(), b)
			if q, ok := errors.AsType[*store.QuorumError](err); !ok || !q.Nodes[1].Silent() || !q.Nodes[2].Silent() || q.Nodes[0].Silent() || q.Nodes[2].Node != servers[2].Addr() {
				t.Errorf("break without replies: %v, want ErrQuorum with the silent servers", err)
			}
			proxies[1].Await(t, "the reply was lost", func(st faultproxy.Stats) bool { return st.Cut > cut })
			eventually.True(t, "the break succeeds when it is repeated", func() bool {
				left, err := operator.BreakLease(t.Context(), b)
				return err == nil && left > 0
			})
			if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("renewal of the broken lease: %v, want %v", err, store.ErrNotHeld)
			}
			breakNow(t, operator, b)
			if st, err := operator.Inspect(t.Context(), r.Name); err != nil || !st.Free() {
				t.Errorf("%+v, %v, want the lock free", st, err)
			}
		})
	}
}
