package objectstest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/contest"
	"github.com/leasehold-dev/leasehold/internal/testenv/door"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/torturetest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// disturb loses one answer in 20, and has the server answer 3 requests in 100 with one of errs.
func (k Kind) disturb(s *Server, errs []Failure) {
	s.Lose(func(*http.Request) bool { return rand.IntN(20) == 0 })
	s.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		fails := rand.IntN(100) < 3
		if fails {
			k.Fail(w, errs[rand.IntN(len(errs))])
		}
		return fails
	})
}

// ConformsUnderFaults runs the suite while answers are lost and the server errs.
func (k Kind) ConformsUnderFaults(t *testing.T) {
	srv := k.Start(t, false)
	k.disturb(srv, k.Passing)
	k.conforms(t, srv.URL)
}

// link is the way to a server. The server can refuse requests.
type link struct {
	*faultproxy.Proxy
	door *door.Door
	fail func(w http.ResponseWriter)
}

// LinkTo returns a link to a server, which refuses requests by fail, and the URL of its other end.
func LinkTo(t testing.TB, h http.Handler, fail func(w http.ResponseWriter)) (l storetest.Link, url string) {
	d := door.Open(t, h)
	p := faultproxy.New(t, d.Listener.Addr().String())
	return link{p, d, fail}, "http://" + p.Addr()
}

// Refuse implements storetest.Refuser.
func (l link) Refuse() {
	l.door.Answer(func(w http.ResponseWriter, _ *http.Request) bool { l.fail(w); return true })
}

// Pass implements storetest.Link.
func (l link) Pass() {
	l.door.Answer(func(http.ResponseWriter, *http.Request) bool { return false })
	l.Proxy.Pass()
}

// Faults has each verb meet each fault. A busy server gets longer to answer than by default.
func (k Kind) Faults(t *testing.T) {
	srv, patient := k.Start(t, false), Options{Timeout: time.Minute}
	storetest.RunFaults(t, func(t *testing.T) (*store.Store, storetest.Link) {
		l, url := LinkTo(t, srv.Door, func(w http.ResponseWriter) { k.Fail(w, k.Final[0]) })
		return k.Store(t, url, patient), l
	}, storetest.Options{Second: func(t *testing.T) *store.Store { return k.Store(t, srv.Direct, patient) }})
}

// ServerErrors tests that errors of the server are no refusals.
func (k Kind) ServerErrors(t *testing.T) {
	srv := k.Start(t, false)
	s := k.Store(t, srv.URL, Options{})
	for _, f := range slices.Concat(k.Passing, k.Slow) {
		ErrsOnce(t, s, srv.Door, k.isWrite, f.Code, func(w http.ResponseWriter) { k.Fail(w, f) })
	}
}

// ErrsOnce tests that a lock is acquired and released although the server errs once each time, when
// it is asked to write, and when it is asked to read.
func ErrsOnce(t *testing.T, s *store.Store, d *door.Door, isWrite func(*http.Request) bool, name string, fail func(http.ResponseWriter)) {
	t.Helper()
	for _, writes := range []bool{true, false} {
		trouble := func() {
			pick := door.Once(func(r *http.Request) bool { return isWrite(r) == writes })
			d.Answer(func(w http.ResponseWriter, r *http.Request) bool {
				picked := pick(r)
				if picked {
					fail(w)
				}
				return picked
			})
		}
		l := Lease(name, time.Minute)
		trouble()
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
			t.Errorf("%s: acquire: %v", name, err)
		}
		trouble()
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Errorf("%s: release: %v", name, err)
		}
	}
}

// SlowDown tests that a client sends few requests while a server asks for fewer, whatever it is
// asked for, and goes on when the server does.
func (k Kind) SlowDown(t *testing.T) {
	srv := k.Start(t, false)
	s := k.Store(t, srv.URL, Options{Timeout: 3 * time.Second})
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool { k.Fail(w, k.Slow[0]); return true })
	srv.Taken()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: Lease(store.NewOwner(), time.Minute)}); !errors.Is(err, store.ErrQuorum) {
				t.Errorf("acquire while the server asks for fewer requests: %v", err)
			}
		})
	}
	wg.Wait()
	// At most 8 are under way at once; then there are pauses of 100 ms, 200 ms, and so on.
	if n := srv.Taken(); n[http.MethodGet]+n[k.Method] > 8*8 {
		t.Errorf("%v requests in 3 s to a server that asks for fewer", n)
	}
	srv.Answer(func(http.ResponseWriter, *http.Request) bool { return false })
	l := Lease("after", time.Minute)
	eventually.True(t, "a lock is granted after that", func() bool {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
		return err == nil
	})
}

// Contest has clients contend for a lock while answers are lost, the server errs, and is killed and
// started again: no two hold the lock at once, tokens rise, and each client gets it.
func (k Kind) Contest(t *testing.T) {
	srv := k.Start(t, true)
	var clients []store.Engine
	for range 4 {
		clients = append(clients, k.Store(t, srv.URL, Options{Poll: 100 * time.Millisecond, Timeout: 5 * time.Second}))
	}
	k.disturb(srv, slices.Concat(k.Passing, k.Slow))
	const patience = 2 * time.Minute
	// Each waiter writes once in a third of TTL. On a busy machine a write to such a server takes
	// half a second, and those of several clients meet.
	c := &contest.Contest{Name: "contested", TTL: 10 * time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, s := range clients {
		wg.Go(func() { c.Contend(ctx, t, s) })
	}
	c.GoesOn(t, "with lost answers", patience, clients...)
	srv.Kill()
	srv.start()
	c.GoesOn(t, "after the server was killed", patience, clients...)
	cancel()
	wg.Wait()
}

// Torture has processes compete for locks of all kinds, which are stopped and killed meanwhile. They
// never hold one at the same time, are told of losses in time, and wait for a free lock no longer
// than 16 times Poll, as the documents say. The first two hold as well while the server is killed
// again and again.
func (k Kind) Torture(t *testing.T) {
	const ttl, poll = 4 * time.Second, 100 * time.Millisecond
	url := func(s *Server) string { return k.URL(s.Direct) + "&poll=" + poll.String() }
	t.Run("undisturbed server", func(t *testing.T) {
		t.Parallel()
		torturetest.Run(t, url(k.Start(t, false)), ttl, 16*poll*5/4+4*time.Second, nil, k.Env...)
	})
	t.Run("killed server", func(t *testing.T) {
		t.Parallel()
		srv := k.Start(t, true)
		torturetest.Run(t, url(srv), ttl, 0, func(ctx context.Context) {
			for ctx.Err() == nil {
				clock.Sleep(ctx, 2*time.Second+2*srv.took) // long enough for processes to begin
				srv.Kill()
				clock.Sleep(ctx, time.Second)
				srv.start()
			}
		}, k.Env...)
	})
}
