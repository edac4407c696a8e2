package zkstore

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/store"
)

// eachKind returns a lease of the lock for each kind, which other leases exclude.
func eachKind(name string, ttl time.Duration) []store.Lease {
	all := make([]store.Lease, 4)
	for i := range all {
		all[i] = request(fmt.Sprint(name, i), ttl)
	}
	all[1].Kind, all[1].Weight = store.ReadWrite, 1
	all[2].Kind, all[2].Weight = store.ReadWrite, store.ReadWriteLimit
	all[3].Kind, all[3].Weight = store.Semaphore(2), 2
	return all
}

// whole returns a lease for another owner that excludes all others of its lock.
func whole(l store.Lease) store.Lease {
	l.Owner, l.Attempt, l.Weight = store.NewOwner(), "", l.Kind.Limit
	return l
}

// breakOf returns the request to break the lease l, which is held.
func breakOf(t *testing.T, s *engine, l store.Lease) store.BreakRequest {
	t.Helper()
	st, err := s.Inspect(t.Context(), l.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range st.Holdings() {
		if h.Holder.Owner == l.Owner {
			return store.BreakRequest{Name: l.Name, Owner: l.Owner, Token: h.Token, Reason: "it hangs"}
		}
	}
	t.Fatalf("%s does not hold %q: %+v", l.Owner, l.Name, st)
	return store.BreakRequest{}
}

func breaks(t *testing.T, s *engine, b store.BreakRequest) (left time.Duration) {
	t.Helper()
	left, err := s.BreakLease(t.Context(), b)
	if err != nil {
		t.Fatalf("break the lease of %q: %v", b.Name, err)
	}
	return left
}

// refusesRenewal checks that the lease can certainly not be renewed.
func refusesRenewal(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("%s: got error %v, want one that matches store.ErrNotHeld", what, err)
	}
}

// Nothing that an owner can ask for renews a lease that was broken: not with a longer TTL,
// in another session, through another store, by another attempt or as a reader. The lease
// stays as it is, and ends with its release. Then neither does a late request of the
// attempt bring it back, also after the servers have removed the lock's node.
func TestBrokenLeaseIsNotRenewedInAnyWay(t *testing.T) {
	t.Parallel() // it mostly waits
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	native := connect(t)
	for _, l := range eachKind("renewed in no way", 30*time.Second) {
		l.Attempt = "first"
		mustAcquire(t, s, l)
		b := breakOf(t, other, l)
		if left := breaks(t, other, b); left != l.TTL {
			t.Errorf("%v: the lease lasts for %v, want %v", l.Kind, left, l.TTL)
		}
		longer, longest, second := l, l, l
		longer.TTL += time.Millisecond
		longest.TTL = 36 * time.Second
		second.Attempt = "second"
		for _, from := range []*engine{s, other} {
			for what, r := range map[string]store.Lease{"": l, " for a little longer": longer, " in another session": longest} {
				refusesRenewal(t, fmt.Sprintf("%v: renew%s", l.Kind, what), from.Renew(t.Context(), []store.Lease{r})[0])
			}
			_, err := from.Acquire(t.Context(), store.AcquireRequest{Lease: second})
			var busy *store.BusyError
			if !errors.Is(err, store.ErrNotHeld) && !errors.As(err, &busy) {
				t.Errorf("%v: acquire by another attempt: %v, want an error that says that the lease is not held, or busy", l.Kind, err)
			}
			if l.Weight == store.ReadWriteLimit {
				_, err := from.Downgrade(t.Context(), l)
				refusesRenewal(t, "downgrade", err)
			}
		}
		st, err := other.Inspect(t.Context(), l.Name)
		if err != nil || len(st.Holdings()) != 1 || st.Holder.Owner != l.Owner || !st.Holder.Broken || st.Token != b.Token || len(st.Queue) != 0 {
			t.Errorf("%v: after the break: %+v, %v, want the lease, broken", l.Kind, st, err)
		}
		mustRelease(t, s, l)
		if left := breaks(t, other, b); left != 0 {
			t.Errorf("%v: after the release the lease lasts for %v, want none", l.Kind, left)
		}
		for range 2 {
			for _, from := range []*engine{s, other} {
				_, err := from.Acquire(t.Context(), store.AcquireRequest{Lease: l})
				refusesRenewal(t, fmt.Sprintf("%v: a late request to acquire", l.Kind), err)
				_, err = from.Wait(t.Context(), store.WaitRequest{Lease: l}, nil)
				refusesRenewal(t, fmt.Sprintf("%v: a late request to wait", l.Kind), err)
			}
			if err := native.Delete(DefaultBase+"/"+l.Name, -1); err != nil { // as servers do
				t.Fatal(err)
			}
		}
		mustAcquire(t, s, second) // it is a new lease
		mustRelease(t, s, second)
	}
}

// Renewals that are under way while a lease is broken, in place and from store to store,
// do not outlive the break: none that is sent later succeeds, and the lease is broken.
func TestBreakDuringRenewals(t *testing.T) {
	t.Parallel() // it mostly waits
	stores := []*engine{mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})}
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	for round := range 4 {
		through := stores[:1+round/2]
		for _, l := range eachKind(fmt.Sprintf("renewed meanwhile %d ", round), 30*time.Second) {
			mustAcquire(t, stores[0], l)
			b := breakOf(t, other, l)
			b.Now = round%2 == 1
			var wg sync.WaitGroup
			renewing := make(chan struct{}, 100)
			for i := range 4 {
				wg.Go(func() {
					for n := 0; ; n++ {
						r := l
						r.TTL += time.Duration(n%2) * 6 * time.Second
						err := through[i%len(through)].Renew(t.Context(), []store.Lease{r})[0]
						select {
						case renewing <- struct{}{}:
						default:
						}
						if errors.Is(err, store.ErrNotHeld) {
							return
						}
						if err != nil {
							t.Errorf("renew: %v, want success or an error that matches store.ErrNotHeld", err)
							return
						}
					}
				})
			}
			<-renewing
			breaks(t, other, b)
			for _, s := range stores {
				refusesRenewal(t, "renew after the break", s.Renew(t.Context(), []store.Lease{l})[0])
			}
			wg.Wait()
			if !b.Now {
				if st, err := other.Inspect(t.Context(), l.Name); err != nil || !st.Holder.Broken || st.Holder.Owner != l.Owner {
					t.Fatalf("after the break: %+v, %v, want the lease, broken", st, err)
				}
				mustRelease(t, stores[0], l)
			}
			next := whole(l)
			mustAcquire(t, other, next)
			if left := breaks(t, other, b); left != 0 {
				t.Errorf("the lease lasts for %v, want none", left)
			}
			mustRelease(t, other, next)
		}
	}
}

// The lease of a process that lives and ignores the break, and so does not give its place
// up, lasts for its TTL after the break and no longer.
func TestBreakThatTheHolderIgnores(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	native := connect(t)
	for _, l := range eachKind("ignored", time.Second) {
		s.makeDirFor(t, l.Name)
		place := DefaultBase + "/" + l.Name + "/" + placeName(newMark(l.Owner), specOf(l.Kind), max(l.Weight, 1))
		if _, err := native.Create(place, recordOf(l).encode(), gozk.FlagEphemeralSequential, gozk.WorldACL(gozk.PermAll)); err != nil {
			t.Fatal(err)
		}
		b := breakOf(t, s, l)
		start := time.Now()
		breaks(t, s, b)
		eventually.True(t, "the lease is over", func() bool { return breaks(t, s, b) == 0 })
		if lasted := time.Since(start); lasted < l.TTL {
			t.Errorf("%v: the lease was over after %v, want at least %v", l.Kind, lasted, l.TTL)
		}
		next := whole(l)
		mustAcquire(t, s, next)
		mustRelease(t, s, next)
	}
}

// A process that is told and does not release the lease gives it up once it has not been
// renewed for its TTL, also if it tries to renew it again and again.
func TestBrokenLeaseIsGivenUp(t *testing.T) {
	t.Parallel() // it mostly waits
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	l := request("given up when broken", 10*time.Second)
	mustAcquire(t, s, l)
	breaks(t, other, breakOf(t, other, l))
	h := s.leases.get(leaseKey{l.Name, l.Owner})
	until := h.until
	refusesRenewal(t, "renew", s.Renew(t.Context(), []store.Lease{l})[0])
	if !h.until.Equal(until) {
		t.Errorf("a renewal that was refused has the lease last for %v longer, want no longer", h.until.Sub(until))
	}
	eventually.True(t, "the lock is free", func() bool {
		refusesRenewal(t, "renew", s.Renew(t.Context(), []store.Lease{l})[0])
		st, err := other.Inspect(t.Context(), l.Name)
		return err == nil && !st.Held
	})
}

// A lease that its holder releases at the same moment is over in any case, and the break
// takes nothing from the next holder.
func TestBreakDuringRelease(t *testing.T) {
	t.Parallel() // it mostly waits
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	for i := range 20 {
		l := request("released meanwhile", 36*time.Second)
		mustAcquire(t, s, l)
		b := breakOf(t, other, l)
		b.Now = i%2 == 1
		var wg sync.WaitGroup
		next := request(l.Name, l.TTL)
		wg.Go(func() {
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil && !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("release: %v, want success or an error that matches store.ErrNotHeld", err)
			}
			if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: next}, nil); err != nil {
				t.Errorf("wait: %v", err)
			}
		})
		if _, err := other.BreakLease(t.Context(), b); err != nil && !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("break: %v, want success or an error that matches store.ErrNotHeld", err)
		}
		wg.Wait()
		if st, err := other.Inspect(t.Context(), l.Name); err != nil || st.Holder.Owner != next.Owner || st.Holder.Broken {
			t.Errorf("after the break: %+v, %v, want the next holder, not broken", st, err)
		}
		mustRelease(t, s, next)
	}
}

// A waiter whose turn has come, and whose lease is broken before it notices, gets no lock,
// also if it read the queue before.
func TestBreakBeforeTheWaiterNotices(t *testing.T) {
	t.Parallel() // it mostly waits
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	for i, look := range []func(w *waiting, q lineup) error{
		func(w *waiting, _ lineup) error { _, err := w.look(t.Context()); return err },
		func(w *waiting, q lineup) error { // it has waited for long
			w.start, q.asOf = w.start.Add(-w.r.TTL), 0
			_, err := w.granted(t.Context(), q)
			return err
		},
	} {
		held := request(fmt.Sprint("unnoticed", i), 36*time.Second)
		l := request(held.Name, held.TTL)
		mustAcquire(t, other, held)
		start := s.clock.Now()
		p, err := s.enqueue(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		mustRelease(t, other, held)
		p.early = nil // it has seen that it has to wait
		q, me, err := p.queue(t.Context())
		if err != nil || me != 0 {
			t.Fatalf("the queue is %+v, %v, want the waiter first", q, err)
		}
		b := breakOf(t, other, l)
		breaks(t, other, b)
		err = look(&waiting{s: s, r: store.WaitRequest{Lease: l}, start: start, place: p}, q)
		if !errors.Is(err, store.ErrNotHeld) || !strings.Contains(err.Error(), "was broken") {
			t.Errorf("look %d: a waiter whose lease was broken: %v, want an error that says so", i, err)
		}
		if left := breaks(t, other, b); left != 0 {
			t.Errorf("look %d: the lease lasts for %v, want none", i, left)
		}
	}
}

// The validity of a lease that had to wait counts from no later than the queue was read: a
// break after that would come too late to shorten it.
func TestValidityOfAWaiterCountsFromItsLook(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	l := request("counts from the look", 36*time.Second)
	start := s.clock.Now()
	p, err := s.enqueue(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	q, _, err := p.queue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sure := s.clock.Now()
	if _, err := p.Prove(t.Context(), sure+1); err != nil { // others write in the same session
		t.Fatal(err)
	}
	w := &waiting{s: s, r: store.WaitRequest{Lease: l}, start: start, place: p}
	q.asOf = sure
	g, err := w.granted(t.Context(), q)
	if err != nil || start.Add(g.Since) > sure {
		t.Errorf("%+v, %v: the lease counts from %v after the look, want none", g, err, start.Add(g.Since).Sub(sure))
	}
	mustRelease(t, s, l)
}

// A holder whose lease was broken, and whose owner has another lease of the lock by then,
// has lost the first one.
func TestLaterLeaseOfTheOwnerIsAnother(t *testing.T) {
	t.Parallel() // it mostly waits
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	for _, l := range eachKind("later", 30*time.Second) {
		l.Attempt = "first"
		first := mustAcquire(t, s, l)
		b := breakOf(t, other, l)
		b.Now = true
		breaks(t, other, b)
		between := whole(l)
		mustAcquire(t, other, between)
		mustRelease(t, other, between)
		later := l
		later.Attempt = "later"
		if g := mustAcquire(t, other, later); g.Token <= first.Token {
			t.Errorf("%v: token %v, want one above %v", l.Kind, g.Token, first.Token)
		}
		refusesRenewal(t, "renew", s.Renew(t.Context(), []store.Lease{l})[0])
		for _, b.Now = range []bool{false, true} {
			if left := breaks(t, s, b); left != 0 {
				t.Errorf("%v: the lease lasts for %v, want none", l.Kind, left)
			}
		}
		if err := other.Renew(t.Context(), []store.Lease{later})[0]; err != nil {
			t.Errorf("%v: renew of the later lease: %v", l.Kind, err)
		}
		mustRelease(t, other, later)
	}
}

// The leases of other kinds of clients cannot be broken, and these wait for one of ours
// that was broken until it is over.
func TestBreakBesideOtherClients(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	const name = "broken beside others"
	lock := gozk.NewLock(connect(t), DefaultBase+"/"+name, gozk.WorldACL(gozk.PermAll))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	st, err := s.Inspect(t.Context(), name)
	if err != nil || !st.Holder.Foreign {
		t.Fatalf("%+v, %v, want a lock of another client", st, err)
	}
	for _, now := range []bool{false, true} {
		b := store.BreakRequest{Name: name, Owner: st.Holder.Owner, Token: st.Token, Now: now}
		if left, err := s.BreakLease(t.Context(), b); !errors.Is(err, store.ErrUnsupported) {
			t.Errorf("break another client's lock: %v, %v, want an error that matches store.ErrUnsupported", left, err)
		}
	}
	if after, err := s.Inspect(t.Context(), name); err != nil || after.Token != st.Token || after.Broken != nil {
		t.Errorf("after the attempt: %+v, %v, want token %v and no note", after, err, st.Token)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	for _, now := range []bool{false, true} {
		l := request(name, 36*time.Second)
		mustAcquire(t, s, l)
		has := make(chan error, 1)
		go func() { has <- lock.Lock() }()
		eventually.True(t, "it waits", func() bool {
			st, err := s.Inspect(t.Context(), name)
			return err == nil && len(st.Queue) == 1
		})
		b := breakOf(t, s, l)
		b.Now = now
		breaks(t, s, b)
		if !now {
			select {
			case err := <-has:
				t.Fatalf("it has the lock before the lease is over: %v", err)
			default:
			}
			mustRelease(t, s, l)
		}
		select {
		case err := <-has:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatal("it waits for a lease that is over")
		}
		if err := lock.Unlock(); err != nil {
			t.Fatal(err)
		}
	}
}

// A holder is told without a renewal of its own, also of the first lease below a base that
// is broken, and once its session is another one.
func TestBreakIsTold(t *testing.T) {
	t.Parallel() // it mostly waits
	p := faultproxy.New(t, shared.Addr)
	s := mustOpen(t, &Options{servers: []string{p.Addr()}, Base: "/told"})
	other := mustOpen(t, &Options{servers: []string{shared.Addr}, Base: "/told"})
	told := make(chan string, 100)
	stop := s.NotifyBroken(func(owner string) { told <- owner })
	for i, ttl := range []time.Duration{30 * time.Second, 30 * time.Second, 36 * time.Second} { // two of one session
		l := request(fmt.Sprint("told", i), ttl)
		mustAcquire(t, s, l)
		if i == 1 {
			p.Cut() // the watch is set again on the next connection
		}
		breaks(t, other, breakOf(t, other, l))
		for owner := ""; owner != l.Owner; {
			select {
			case owner = <-told:
			case <-time.After(patience):
				t.Fatalf("the holder of lease %d is not told", i)
			}
		}
		refusesRenewal(t, "renew", s.Renew(t.Context(), []store.Lease{l})[0])
		_ = s.Release(t.Context(), store.ReleaseRequest{Lease: l})
	}
	stop()
	stop()
}
