//go:build !race

// Client-go brings hundreds of packages, which take minutes to compile with the race detector.

package kubernetesstoretest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
)

// The durations of candidates. client-go knows whole seconds.
const (
	electorLease = 3 * time.Second
	electorRetry = 200 * time.Millisecond
)

// elector is a candidate of client-go's leader election.
type elector struct {
	stop  func()        // ends it
	leads chan struct{} // closed when it leads
}

// elect starts a candidate with the object of a lock. It releases the object at its end if
// releases is set, before it says that it has stopped. leading is called when it leads.
func elect(t *testing.T, s *server, identity string, lasts time.Duration, releases bool, leading func(context.Context)) *elector {
	t.Helper()
	client, err := coordinationv1.NewForConfig(s.config())
	if err != nil {
		t.Fatal(err)
	}
	e := &elector{leads: make(chan struct{})}
	config := leaderelection.LeaderElectionConfig{
		Lock:          &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "leader"}, Client: client, LockConfig: resourcelock.ResourceLockConfig{Identity: identity}},
		LeaseDuration: lasts, RenewDeadline: lasts * 2 / 3, RetryPeriod: electorRetry, ReleaseOnCancel: releases,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { leading(ctx); close(e.leads) },
			OnStoppedLeading: func() {},
		},
	}
	le, err := leaderelection.NewLeaderElector(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{})) // without a log
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		le.Run(ctx)
	}()
	e.stop = func() {
		cancel()
		<-stopped
	}
	t.Cleanup(e.stop)
	return e
}

func nothing(context.Context) {}

// A leader of client-go excludes all kinds of locks, and is shown as the holder. When it ends, a waiter has
// the lock at once, and with a larger token than the holder before that leader.
func TestLeaderExcludesHoldersWithClientGo(t *testing.T) {
	t.Parallel()
	srv := start(t)
	s := open(t, srv, kubernetesstore.Options{})
	before := lease("leader", time.Minute)
	g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: before})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: before}); err != nil {
		t.Fatal(err)
	}
	leader := elect(t, srv, "controller-0", electorLease, true, nothing)
	<-leader.leads
	for _, kind := range []store.Kind{{}, store.ReadWrite, store.Semaphore(3)} {
		l := lease("leader", time.Minute)
		l.Kind = kind
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
		busy, of := (*store.BusyError)(nil), (*store.KindError)(nil)
		if !errors.As(err, &busy) && !errors.As(err, &of) {
			t.Errorf("acquire %v: %v, want that it is busy", kind, err)
		} else if busy != nil && (!busy.Holder.Foreign || busy.Holder.Owner != "controller-0") {
			t.Errorf("acquire %v: held by %+v, want another kind of client, controller-0", kind, busy.Holder)
		}
	}
	st, err := s.Inspect(t.Context(), "leader")
	if err != nil || !st.Held || !st.Holder.Foreign || st.Token != 0 {
		t.Errorf("inspect: %+v, %v, want another kind of client without a token", st, err)
	}
	if _, err := s.BreakLease(t.Context(), store.BreakRequest{Name: "leader", Owner: st.Holder.Owner, Token: 1}); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("break: %v, want that another kind of client has made it", err)
	}
	got := make(chan store.Grant, 1)
	l := lease("leader", time.Minute)
	go func() {
		g, err := s.Wait(t.Context(), store.WaitRequest{Lease: l}, nil)
		if err != nil {
			t.Error(err)
		}
		got <- g
	}()
	eventually.True(t, "there is a waiter", func() bool {
		st, err := s.Inspect(t.Context(), "leader")
		return err == nil && len(st.Queue) == 1
	})
	select {
	case <-got:
		t.Fatal("the waiter has the lock of a leader")
	case <-time.After(electorLease + time.Second): // the leader renews
	}
	began := time.Now()
	leader.stop()
	if next := <-got; next.Token <= g.Token {
		t.Errorf("token %v after %v, want a larger one", next.Token, g.Token)
	}
	t.Logf("the waiter has the lock %v after the leader was told to end", time.Since(began).Round(time.Millisecond))
	if o := srv.object(t, "leader"); o.Spec.HolderIdentity != l.Owner || o.Spec.LeaseDurationSeconds != 61 || o.Spec.LeaseTransitions != 2 {
		t.Errorf("the object says %+v, want the new holder, for 61 s, after 2 transitions", o.Spec)
	}
}

// A candidate of client-go does not lead while somebody holds the lock, of whatever kind, and renews
// it. It leads when the lock is released.
func TestHolderExcludesLeadersWithClientGo(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]store.Kind{"mutex": {}, "readers": store.ReadWrite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t)
			s := open(t, srv, kubernetesstore.Options{})
			l := lease("leader", 4*time.Second)
			l.Kind = kind
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
				t.Fatal(err)
			}
			candidate := elect(t, srv, "controller-0", electorLease, true, nothing)
			for began := time.Now(); time.Since(began) < 3*electorLease; time.Sleep(300 * time.Millisecond) {
				if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
					t.Fatal(err)
				}
				select {
				case <-candidate.leads:
					t.Fatal("a candidate leads while somebody holds the lock")
				default:
				}
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
				t.Fatal(err)
			}
			<-candidate.leads
			if err := s.Renew(t.Context(), []store.Lease{l})[0]; !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("renew after another leads: %v, want that it is not held", err)
			}
		})
	}
}

// When a leader of client-go dies, a waiter has the lock after its lease. When a holder dies, a candidate
// leads after its TTL, and what the holder still sends is refused.
func TestDeadLeaderAndDeadHolderWithClientGo(t *testing.T) {
	t.Parallel()
	srv := start(t)
	s := open(t, srv, kubernetesstore.Options{})
	leader := elect(t, srv, "controller-0", electorLease, false, nothing)
	<-leader.leads
	leader.stop()
	began := time.Now()
	l := lease("leader", 2*time.Second)
	if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: l}, nil); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < electorLease/2 {
		t.Errorf("acquired %v after a leader with a lease of %v has died", took, electorLease)
	}
	began = time.Now()
	next := elect(t, srv, "controller-1", electorLease, true, nothing)
	<-next.leads
	if took := time.Since(began); took < l.TTL/2 { // the waiter may have had the lease for a while
		t.Errorf("a candidate leads %v after the lock was acquired for %v", took, l.TTL)
	}
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("renew after another leads: %v, want that it is not held", err)
	}
}

// Candidates of client-go and clients compete for one object. At most one of them has it, tokens rise,
// and all have turns.
func TestLeadersAndHoldersCompeteWithClientGo(t *testing.T) {
	t.Parallel()
	srv := start(t)
	var mu sync.Mutex
	holder, last := "", fence.Token(0)
	turns := map[string]int{}
	ctx, cancel := context.WithCancel(t.Context())
	enter := func(who string, token fence.Token) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil { // candidates that end now do not leave
			return
		}
		if holder != "" {
			t.Errorf("%s and %s at once", holder, who)
		}
		if token != 0 && token <= last {
			t.Errorf("token %v after %v", token, last)
		}
		holder, last = who, max(last, token)
		turns[who]++
	}
	leave := func() {
		mu.Lock()
		defer mu.Unlock()
		holder = ""
	}
	var wg sync.WaitGroup
	for i := range 2 {
		s, who := open(t, srv, kubernetesstore.Options{}), fmt.Sprint("client ", i)
		wg.Go(func() {
			for ctx.Err() == nil {
				l := lease("leader", 15*time.Second)
				g, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
				if err != nil {
					continue
				}
				enter(who, g.Token)
				time.Sleep(20 * time.Millisecond)
				leave()
				if err := s.Release(context.WithoutCancel(ctx), store.ReleaseRequest{Lease: l}); err != nil {
					t.Errorf("release: %v", err)
				}
				time.Sleep(electorRetry) // the queue would leave nothing to candidates
			}
		})
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				who := fmt.Sprint("candidate ", i)
				e := elect(t, srv, fmt.Sprint(who, " ", n), 15*time.Second, true, func(leads context.Context) {
					if leads.Err() == nil {
						enter(who, 0)
					}
				})
				select {
				case <-e.leads:
					time.Sleep(20 * time.Millisecond)
					leave() // client-go releases before it says that it stops
				case <-ctx.Done():
				}
				e.stop()
			}
		})
	}
	eventually.True(t, "all had turns", func() bool {
		mu.Lock()
		defer mu.Unlock()
		few := len(turns) < 4
		for _, n := range turns {
			few = few || n < 3
		}
		return !few || t.Failed()
	})
	cancel()
	wg.Wait()
	t.Log(turns)
}
