// Package beside runs other Redis lock clients for Go, as they are, beside Leasehold on the
// same key. Its tests are what docs/beside.md says of them.
package beside

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	lh "github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// other is a client and how it names the key of the lock "x".
type other struct {
	kind  locks.Kind
	key   string
	nodes int
}

func others(t *testing.T) []other {
	t.Helper()
	return []other{
		{key: "x", kind: kind(t, "redsync-goredis-1"), nodes: 1},
		{key: "x", kind: kind(t, "redsync-rueidis-1"), nodes: 1},
		{key: "x", kind: kind(t, "redsync-goredis-5"), nodes: 5},
		{key: "x", kind: kind(t, "redislock"), nodes: 1},
		{key: "rueidislock:0:x", kind: kind(t, "rueidislock-1"), nodes: 1},
	}
}

func kind(t *testing.T, name string) locks.Kind {
	t.Helper()
	k, ok := locks.ContendedNamed(name)
	if !ok {
		t.Fatalf("no implementation %q", name)
	}
	return k
}

// pair opens a client of theirs and a lock of ours over the same servers. The key of our lock
// is that of their lock "x".
func (o other) pair(t *testing.T) (theirs locks.Client, ours *lh.Lock) {
	t.Helper()
	var addrs []string
	for _, s := range redistest.StartN(t, o.nodes) {
		addrs = append(addrs, s.Addr())
	}
	theirs, err := o.kind.Open(t.Context(), addrs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(theirs.Close)
	st, client, err := locks.Leasehold(t.Context(), addrs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return theirs, client.Mutex(o.key).With(lh.LockOptions{TTL: locks.TTL})
}

// TestTheirsIsRespected checks that we do not get a lock that another client holds, that its
// holder is shown as foreign, and that our waiter gets it after its release.
func TestTheirsIsRespected(t *testing.T) {
	for _, o := range others(t) {
		t.Run(o.kind.Name, func(t *testing.T) {
			theirs, ours := o.pair(t)
			its := theirs.Pair("x")
			if err := its.Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, err := ours.Try(t.Context())
			busy, ok := errors.AsType[*lh.BusyError](err)
			if !ok || !busy.Holder.Foreign || busy.ExpiresIn <= 0 {
				t.Errorf("while they hold it: %v, want a foreign holder", err)
			}
			waiting := make(chan struct{})
			var once sync.Once
			waiter := ours.With(lh.LockOptions{TTL: locks.TTL, OnWait: func(error) { once.Do(func() { close(waiting) }) }})
			got := make(chan error, 1)
			go func() {
				lease, err := waiter.Acquire(t.Context())
				if err == nil {
					err = lease.Release(context.Background())
				}
				got <- err
			}()
			<-waiting
			if err := its.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-got; err != nil {
				t.Errorf("after their release: %v, want the lock", err)
			}
		})
	}
}

// TestOursIsRespected checks that they do not get a lock of ours, do not end it, and get it
// after our release.
func TestOursIsRespected(t *testing.T) {
	for _, o := range others(t) {
		t.Run(o.kind.Name, func(t *testing.T) {
			theirs, ours := o.pair(t)
			lease, err := ours.Try(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			its := theirs.Pair("x")
			brief, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if err := its.Lock(brief); err == nil {
				t.Fatal("they got a lock that we hold, want an error")
			}
			if err := lease.Err(); err != nil {
				t.Errorf("our lease: %v, want it valid", err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Errorf("our release: %v, want no error", err)
			}
			if err := its.Lock(t.Context()); err != nil {
				t.Fatalf("after our release: %v, want the lock", err)
			}
			if err := its.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTheyExcludeEachOther checks that both exclude each other under contention.
func TestTheyExcludeEachOther(t *testing.T) {
	for _, o := range others(t) {
		t.Run(o.kind.Name, func(t *testing.T) {
			theirs, ours := o.pair(t)
			var inside atomic.Int32
			var all sync.WaitGroup
			work := func() {
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d holders at the same time, want 1", n)
				}
				time.Sleep(time.Millisecond)
				inside.Add(-1)
			}
			for range 2 {
				all.Go(func() {
					its := theirs.Pair("x")
					for done := 0; done < 5; {
						unlock, err := lockInTime(t, its)
						if locks.GaveUp(err) || errors.Is(err, errMissed) {
							continue
						}
						if err != nil {
							t.Error(err)
							return
						}
						work()
						if err := unlock(); err != nil {
							t.Error(err)
							return
						}
						done++
					}
				})
				all.Go(func() {
					for range 100 {
						lease, err := ours.Acquire(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						work()
						if err := lease.Release(t.Context()); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}

var errMissed = errors.New("not locked within a TTL")

// lockInTime locks, or fails with errMissed: on a busy machine, a caller of rueidislock may wait
// for a message that never comes.
func lockInTime(t *testing.T, p load.Pair) (unlock func() error, err error) {
	// The lock ends with the context, which therefore gets no deadline.
	ctx, cancel := context.WithCancel(t.Context())
	waits := time.AfterFunc(locks.TTL, cancel)
	err = p.Lock(ctx)
	unlock = func() error {
		defer cancel()
		return p.Unlock(t.Context())
	}
	switch missed := !waits.Stop(); {
	case missed && err == nil:
		return nil, errors.Join(errMissed, unlock())
	case missed:
		return nil, errors.Join(errMissed, err)
	case err != nil:
		cancel()
		return nil, err
	}
	return unlock, nil
}
