package zkstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/store"
)

// A waiter reports that no server answers, and reports the holder again once a server does.
func TestWaiterIsToldOfAnOutage(t *testing.T) {
	t.Parallel() // it mostly waits
	p := faultproxy.New(t, shared.Addr)
	s := mustOpen(t, &Options{servers: []string{p.Addr()}, Timeout: 15 * time.Second})
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	holder := request("outage", 30*time.Second)
	mustAcquire(t, other, holder)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	told := make(chan error, 1000)
	done := make(chan error, 1)
	waiter := request(holder.Name, 3*time.Second)
	go func() {
		_, err := s.Wait(ctx, store.WaitRequest{Lease: waiter}, func(err error) { told <- err })
		done <- err
	}()
	next := func(want error) {
		t.Helper()
		for {
			select {
			case err := <-told:
				if errors.Is(err, want) {
					return
				}
			case err := <-done:
				t.Fatalf("the wait ended with %v before it reported %v", err, want)
			}
		}
	}
	next(store.ErrBusy)
	p.Blackhole()
	next(store.ErrQuorum)
	p.Pass()
	next(store.ErrBusy)
	mustRelease(t, other, holder)
	if err := <-done; err != nil {
		t.Fatalf("wait: %v", err)
	}
	mustRelease(t, s, waiter) // for the next run of this test
}

// A waiter that finds the place before its own gone leaves no watch behind.
func TestNoWatchOfWhatIsGone(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	l := request("watched", 10*time.Second)
	mustAcquire(t, s, l)
	p := s.leases.get(leaseKey{l.Name, l.Owner}).place.Load()
	gone := placeName(newMark("somebody"), rule.Mutex, 1) + "0000000000"
	q := lineup{queue: queue{{name: gone, spec: rule.Mutex, weight: 1}, p.numbered}}
	if is, err := p.watch(t.Context(), q, 1); err != nil || !is {
		t.Fatalf("watch: %v, %v", is, err)
	}
	if all, err := askWord(t.Context(), shared.Addr, "wchp"); err != nil || strings.Contains(all, "whitelist") || strings.Contains(all, gone) {
		t.Errorf("the server watches %q (%v)", all, err)
	}
	mustRelease(t, s, l)
}

// A waiter tells its caller that the lock was in use, also if the holder has left before it could be read.
func TestToldOfAHolderThatHasLeft(t *testing.T) {
	t.Parallel() // it mostly waits
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	held, l := request("has left", 20*time.Second), request("has left", 20*time.Second)
	mustAcquire(t, other, held)
	p, err := s.enqueue(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, other, held)
	var told []error
	w := &waiting{s: s, r: store.WaitRequest{Lease: l}, reason: func(err error) { told = append(told, err) }, start: s.clock.Now(), place: p}
	g, err := w.once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || !errors.Is(told[0], store.ErrBusy) {
		t.Errorf("the caller is told %v, and granted %+v, want to be told once that the lock was in use", told, g)
	}
	mustRelease(t, s, l)
}
