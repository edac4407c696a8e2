package s3storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/contest"
	"github.com/leasehold-dev/leasehold/internal/testenv/torturetest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/s3store"
)

func lease(name string, ttl time.Duration) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), TTL: ttl}
}

func isPut(r *http.Request) bool { return r.Method == http.MethodPut }

// once returns f the first time that which is true, and then false.
func once(which func(*http.Request) bool) func(*http.Request) bool {
	var done atomic.Bool
	return func(r *http.Request) bool { return which(r) && done.CompareAndSwap(false, true) }
}

// Servers that ignore the conditions are refused, and the error names the condition.
func TestIgnoredConditionsAreRefused(t *testing.T) {
	srv := start(t)
	for _, header := range []string{"If-Match", "If-None-Match"} {
		d := openDoor(t, srv, header)
		for range 2 { // the second time the object of the probe is there
			o := with(t, d.URL, s3store.Options{Prefix: "ignores-" + header})
			s, err := s3store.Open(t.Context(), bucket, o)
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), "does not heed "+header) {
				t.Errorf("open a server that ignores %s: %v, want a refusal that names it", header, err)
			}
		}
	}
}

// A lock whose answer was lost is a lock, and not one that another owner has.
func TestLostAnswerIsNoConflict(t *testing.T) {
	srv := start(t)
	d := openDoor(t, srv)
	s := open(t, d.URL, s3store.Options{})
	for _, name := range []string{"new", "new", "again", "again"} {
		lose := once(isPut)
		d.lose.Store(&lose)
		l := lease(name, time.Minute)
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
			t.Fatalf("acquire, whose answer was lost: %v", err)
		}
		lose = once(isPut)
		d.lose.Store(&lose)
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Fatalf("release, whose answer was lost: %v", err)
		}
	}
}

// A write that the server refuses since another one is under way (409) is made again, and so is
// one that it has not carried out for a reason of its own (500).
func TestServerErrors(t *testing.T) {
	srv := start(t)
	d := openDoor(t, srv)
	s := open(t, d.URL, s3store.Options{})
	for status, code := range map[int]string{http.StatusConflict: "ConditionalRequestConflict", http.StatusInternalServerError: "InternalError", http.StatusForbidden: "RequestTimeTooSkewed"} {
		for _, which := range []func(*http.Request) bool{isPut, func(r *http.Request) bool { return !isPut(r) }} {
			pick := once(which)
			answer := func(w http.ResponseWriter, r *http.Request) bool {
				if pick(r) {
					failure(w, status, code)
					return true
				}
				return false
			}
			d.answer.Store(&answer)
			l := lease(code, time.Minute)
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
				t.Errorf("acquire after one answer %d: %v", status, err)
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
				t.Errorf("release after one answer %d: %v", status, err)
			}
		}
	}
}

// A refusal, such as for a missing right, is returned at once and with the reason.
func TestRefusalsAreFinal(t *testing.T) {
	srv := start(t)
	d := openDoor(t, srv)
	s := open(t, d.URL, s3store.Options{})
	for status, code := range map[int]string{http.StatusForbidden: "AccessDenied", http.StatusNotFound: "NoSuchBucket", http.StatusMovedPermanently: "PermanentRedirect", http.StatusNotImplemented: "NotImplemented"} {
		answer := func(w http.ResponseWriter, r *http.Request) bool { failure(w, status, code); return true }
		d.answer.Store(&answer)
		d.taken()
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease(code, time.Minute)})
		n := d.taken()
		if !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), code) || n[http.MethodGet] != 1 || n[http.MethodPut] != 0 {
			t.Errorf("acquire: %v after %v requests, want one request and an error with %s", err, n, code)
		}
	}
}

// While a server asks for fewer requests, a client sends few, whatever it is asked for, and goes
// on when the server does.
func TestSlowDown(t *testing.T) {
	srv := start(t)
	d := openDoor(t, srv)
	s := open(t, d.URL, s3store.Options{Timeout: 3 * time.Second})
	slow := func(w http.ResponseWriter, r *http.Request) bool {
		failure(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	}
	d.answer.Store(&slow)
	d.taken()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease(store.NewOwner(), time.Minute)}); !errors.Is(err, store.ErrQuorum) {
				t.Errorf("acquire while the server asks for fewer requests: %v", err)
			}
		})
	}
	wg.Wait()
	// At most 8 are under way at once; then there are pauses of 100 ms, 200 ms, and so on.
	if n := d.taken(); n[http.MethodGet]+n[http.MethodPut] > 8*8 {
		t.Errorf("%v requests in 3 s to a server that asks for fewer", n)
	}
	d.answer.Store(nil)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease("after", time.Minute)}); err != nil {
		t.Errorf("acquire after that: %v", err)
	}
}

// Clients contend for a lock while answers are lost, the server errs, and is killed and started
// again: no two hold the lock at once, tokens rise, and each client gets it.
func TestContest(t *testing.T) {
	srv := start(t)
	srv.own()
	d := openDoor(t, srv)
	o := s3store.Options{Durable: true, Timeout: 5 * time.Second}
	var clients []store.Engine
	for range 6 {
		clients = append(clients, open(t, d.URL, o))
	}
	lose := func(r *http.Request) bool { return isPut(r) && rand.IntN(20) == 0 }
	d.lose.Store(&lose)
	answer := func(w http.ResponseWriter, r *http.Request) bool {
		switch rand.IntN(100) {
		case 0:
			failure(w, http.StatusInternalServerError, "InternalError")
		case 1:
			failure(w, http.StatusServiceUnavailable, "SlowDown")
		case 2:
			if !isPut(r) {
				return false
			}
			failure(w, http.StatusConflict, "ConditionalRequestConflict")
		default:
			return false
		}
		return true
	}
	d.answer.Store(&answer)
	c := &contest.Contest{Name: "contested", TTL: 4 * time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, s := range clients {
		wg.Go(func() { c.Contend(ctx, t, s) })
	}
	c.GoesOn(t, "with lost answers", 2*time.Minute, clients...)
	srv.kill()
	srv.start()
	c.GoesOn(t, "after the server was killed", 2*time.Minute, clients...)
	cancel()
	wg.Wait()
}

// Processes that compete for locks of all kinds, and are stopped and killed meanwhile, never hold
// one at the same time, are told of losses in time, and wait for a free lock no longer than
// docs/s3.md says. The first two hold as well while the server is killed again and again.
func TestTorture(t *testing.T) {
	const ttl, poll = 4 * time.Second, 100 * time.Millisecond
	url := func(s *server) string {
		return "s3://" + bucket + "/torture?durable=true&poll=" + poll.String() + "&endpoint=" + s.url()
	}
	env := []string{"AWS_ACCESS_KEY_ID=" + key, "AWS_SECRET_ACCESS_KEY=" + secret, "AWS_REGION=" + region, "AWS_EC2_METADATA_DISABLED=true"}
	t.Run("undisturbed server", func(t *testing.T) {
		t.Parallel()
		torturetest.Run(t, url(start(t)), ttl, 16*poll*5/4+4*time.Second, nil, env...)
	})
	t.Run("killed server", func(t *testing.T) {
		t.Parallel()
		srv := start(t)
		srv.own()
		torturetest.Run(t, url(srv), ttl, 0, func(ctx context.Context) {
			for ctx.Err() == nil {
				clock.Sleep(ctx, 2*time.Second)
				srv.kill()
				clock.Sleep(ctx, time.Second)
				srv.start()
			}
		}, env...)
	})
}

// A client that is gone holds the lock for its TTL, and a waiter then gets it.
func TestDeadHolder(t *testing.T) {
	srv := start(t)
	dead, other := open(t, srv.url(), s3store.Options{}), open(t, srv.url(), s3store.Options{})
	l := lease("job", time.Second)
	began := time.Now()
	if _, err := dead.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Wait(t.Context(), store.WaitRequest{Lease: lease("job", time.Minute)}, nil); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < l.TTL {
		t.Errorf("granted to another owner %v after a lease of %v", took, l.TTL)
	}
}

// With Skew, a process that tries once gets the lock of a dead holder, though each try is made
// by a new client; without it, none does.
func TestDeadHolderIsSeenByNewClients(t *testing.T) {
	srv := start(t)
	o := s3store.Options{Skew: 700 * time.Millisecond}
	l := lease("job", 500*time.Millisecond) // dates are in seconds: a client without Skew would see its end a second earlier
	began := time.Now()
	if _, err := open(t, srv.url(), o).Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Fatal(err)
	}
	try := func(o s3store.Options) error {
		s, err := s3store.Open(t.Context(), bucket, with(t, srv.url(), o))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: lease("job", time.Minute)})
		return err
	}
	for {
		if time.Since(began) > 2*l.TTL {
			if err := try(s3store.Options{}); !errors.Is(err, store.ErrBusy) {
				t.Fatalf("a client that uses no dates and sees the lease for the first time: %v, want busy", err)
			}
		}
		err := try(o)
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrBusy) || time.Since(began) > time.Minute {
			t.Fatalf("try: %v, want busy", err)
		}
	}
	if took := time.Since(began); took < l.TTL {
		t.Errorf("granted to another owner %v after a lease of %v", took, l.TTL)
	}
}
