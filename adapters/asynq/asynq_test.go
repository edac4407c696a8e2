package asynq_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	lib "github.com/hibiken/asynq"
	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/asynq"
	"github.com/leasehold-dev/leasehold/internal/testenv/adaptertest"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Of two schedulers with the same task, one enqueues it. When its process stops, the other
// does.
func TestOneSchedulerEnqueues(t *testing.T) {
	addr := redistest.Start(t).Addr()
	st, err := redisstore.Open(t.Context(), "redis://"+addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	enqueued := make(chan int)
	var stop []context.CancelFunc
	var ended []chan error
	for i := range 2 {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		stop, ended = append(stop, cancel), append(ended, make(chan error, 1))
		leads := make(chan struct{})
		registered := sync.OnceFunc(func() { close(leads) })
		go func() {
			ended[i] <- asynq.Run(ctx, leasehold.New(st, nil).Election("scheduler"), func() (asynq.Scheduler, error) {
				s := lib.NewScheduler(lib.RedisClientOpt{Addr: addr}, &lib.SchedulerOpts{
					LogLevel: lib.FatalLevel,
					PostEnqueueFunc: func(_ *lib.TaskInfo, err error) {
						if err != nil { // the next tick tries again
							t.Log(err)
							return
						}
						select {
						case enqueued <- i:
						case <-ctx.Done():
						}
					},
				})
				_, err := s.Register("@every 1s", lib.NewTask("report", nil))
				registered()
				return s, err
			})
		}()
		if i == 0 {
			<-leads
		}
	}
	for range 3 {
		if by := <-enqueued; by != 0 {
			t.Errorf("scheduler %d enqueued a task, want 0", by)
		}
	}
	stop[0]()
	if err := <-ended[0]; !errors.Is(err, context.Canceled) {
		t.Errorf("the first ended with %v, want %v", err, context.Canceled)
	}
	if by := <-enqueued; by != 1 {
		t.Errorf("scheduler %d enqueued a task after 0 was stopped, want 1", by)
	}
	stop[1]()
	if err := <-ended[1]; !errors.Is(err, context.Canceled) {
		t.Errorf("the second ended with %v, want %v", err, context.Canceled)
	}
}

// recorded is a scheduler that counts its calls.
type recorded struct{ running, started *atomic.Int64 }

func (r recorded) Start() error { r.running.Add(1); r.started.Add(1); return nil }
func (r recorded) Shutdown()    { r.running.Add(-1) }

// A scheduler that loses its term is shut down, and the next term has another one. If a
// scheduler cannot be made, the candidate tries again.
func TestTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		st := memstore.New(&memstore.Options{Clock: now})
		defer st.Close()
		e := leasehold.New(st, &leasehold.Options{Clock: now}).Election("scheduler").With(leasehold.LockOptions{MaxHold: time.Minute})
		var running, started atomic.Int64
		made := 0
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- asynq.Run(ctx, e, func() (asynq.Scheduler, error) {
				if made++; made == 1 {
					return nil, errors.New("no database yet")
				}
				return recorded{&running, &started}, nil
			})
		}()
		for started.Load() < 3 {
			time.Sleep(time.Second)
			if n := running.Load(); n > 1 {
				t.Fatalf("%d schedulers run, want one at most", n)
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v, want %v", err, context.Canceled)
		}
		if n := running.Load(); n != 0 {
			t.Errorf("%d schedulers run at the end, want none", n)
		}
	})
}

// A scheduler that cannot reach the store is shut down before another one starts. The other
// one leads until it resigns.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		far := adaptertest.NewCut(t, now)
		var running, started atomic.Int64
		run := func(s *store.Store) (end func()) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				e := leasehold.New(s, &leasehold.Options{Clock: now}).Election("scheduler")
				ended <- asynq.Run(ctx, e, func() (asynq.Scheduler, error) { return recorded{&running, &started}, nil })
			}()
			return func() {
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("ended with %v, want %v", err, context.Canceled)
				}
			}
		}
		starts := func(n int64, when string) {
			t.Helper()
			for range 600 {
				if time.Sleep(100 * time.Millisecond); running.Load() > 1 {
					t.Fatalf("%d schedulers run %s, want one at most", running.Load(), when)
				}
				if started.Load() == n {
					return
				}
			}
			t.Fatalf("no scheduler has started after a minute %s, want one", when)
		}
		first := run(far.Store)
		starts(1, "at the beginning")
		second := run(far.Near)
		far.Down.Store(true)
		starts(2, "in the outage")
		far.Down.Store(false)
		time.Sleep(time.Minute)
		if n := started.Load(); n != 2 {
			t.Errorf("%d schedulers have started, want 2", n)
		}
		second()
		starts(3, "after the second has resigned")
		first()
		if n := running.Load(); n != 0 {
			t.Errorf("%d schedulers run at the end, want none", n)
		}
	})
}

func ExampleRun() {
	st := memstore.New(nil) // or a Redis: that of the tasks will do
	defer st.Close()
	election := leasehold.New(st, nil).Election("scheduler")

	ctx, cancel := context.WithCancel(context.Background())
	err := asynq.Run(ctx, election, func() (asynq.Scheduler, error) {
		defer cancel() // a program goes on
		s := lib.NewScheduler(lib.RedisClientOpt{Addr: "localhost:6379"}, &lib.SchedulerOpts{LogLevel: lib.FatalLevel})
		_, err := s.Register("0 3 * * *", lib.NewTask("report", nil), lib.Unique(time.Minute))
		fmt.Println("scheduling")
		return s, err
	})
	fmt.Println(err)
	// Output:
	// scheduling
	// context canceled
}
