package beside

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	lh "github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// ways are the ways in which our clients can wait beside those of other libraries.
var ways = []struct {
	name  string
	barge bool
	o     lh.LockOptions
}{
	{name: "queue"},
	{name: "barge", barge: true},
	{name: "poll", o: lh.LockOptions{Tries: 1 << 30, RetryDelay: func(int) time.Duration { return 150 * time.Millisecond }}},
}

// BenchmarkShare measures how often a redsync client, which tries every 50 to 250 ms, gets a
// lock for which four of our clients contend all the time, and how often they get it.
func BenchmarkShare(b *testing.B) {
	for _, way := range ways {
		for _, hold := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
			b.Run(way.name+"/"+hold.String(), func(b *testing.B) {
				var theirs, ours int
				for range b.N {
					ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
					t, o := share(ctx, b, way.barge, way.o, hold, math.MaxInt)
					cancel()
					theirs, ours = theirs+t, ours+o
				}
				b.ReportMetric(float64(theirs)/float64(b.N), "theirs/5s")
				b.ReportMetric(float64(ours)/float64(b.N), "ours/5s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// TestBargeLeavesTurns checks that a client that polls gets a lock for which our clients
// contend all the time, if they barge. In the queue they would hand it to each other.
func TestBargeLeavesTurns(t *testing.T) {
	const turns = 3
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	theirs, ours := share(ctx, t, true, lh.LockOptions{}, time.Millisecond, turns)
	if theirs < turns || ours < turns {
		t.Errorf("in a minute redsync got the lock %d times and Leasehold %d times, want %d each", theirs, ours, turns)
	}
}

// share lets four clients of ours and one of redsync contend for a lock until ctx is done or
// redsync has had it that many turns. It returns how often each side held it.
func share(ctx context.Context, b testing.TB, barge bool, o lh.LockOptions, hold time.Duration, turns int) (theirs, ours int) {
	server := redistest.Start(b)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var got atomic.Int32
	contended := make(chan struct{}) // closed when our clients have had the lock a few times
	var all sync.WaitGroup
	o.TTL = locks.TTL
	for range 4 {
		st, client, err := locks.Leasehold(b.Context(), []string{server.Addr()}, &redisstore.Options{Barge: barge})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { st.Close() })
		lock := client.Mutex("x").With(o)
		all.Go(func() {
			for ctx.Err() == nil {
				lease, err := lock.Acquire(ctx)
				if err != nil {
					return
				}
				time.Sleep(hold)
				if got.Add(1) == 4 {
					close(contended)
				}
				if err := lease.Release(context.Background()); err != nil {
					b.Error(err)
				}
			}
		})
	}
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer c.Close()
	mutex := redsync.New(goredis.NewPool(c)).NewMutex("x")
	select {
	case <-contended:
	case <-ctx.Done():
	}
	for ctx.Err() == nil && theirs < turns {
		if mutex.LockContext(ctx) != nil {
			continue
		}
		time.Sleep(hold)
		theirs++
		if _, err := mutex.UnlockContext(context.Background()); err != nil {
			b.Error(err)
		}
	}
	cancel()
	all.Wait()
	return theirs, int(got.Load())
}

// BenchmarkHandOver measures how long a waiter of ours takes to get a lock that redsync releases.
func BenchmarkHandOver(b *testing.B) {
	server := redistest.Start(b)
	st, client, err := locks.Leasehold(b.Context(), []string{server.Addr()}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer c.Close()
	mutex := redsync.New(goredis.NewPool(c)).NewMutex("x")
	var took time.Duration
	for range b.N {
		if err := mutex.LockContext(b.Context()); err != nil {
			b.Fatal(err)
		}
		got := make(chan time.Time, 1)
		go func() {
			lease, err := client.Mutex("x").Acquire(b.Context())
			if err != nil {
				b.Error(err)
				return
			}
			got <- time.Now()
			if err := lease.Release(context.Background()); err != nil {
				b.Error(err)
			}
		}()
		time.Sleep(200 * time.Millisecond) // it waits
		released := time.Now()
		if _, err := mutex.UnlockContext(b.Context()); err != nil {
			b.Fatal(err)
		}
		took += (<-got).Sub(released)
	}
	b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ms/hand-over")
	b.ReportMetric(0, "ns/op")
}
