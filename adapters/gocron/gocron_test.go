package gocron_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	cron "github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/gocron"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/adaptertest"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scheduler starts a scheduler, which ends with the test.
func scheduler(t *testing.T, o cron.SchedulerOption) cron.Scheduler {
	t.Helper()
	s, err := cron.NewScheduler(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	s.Start()
	return s
}

// soon waits until ok returns true, and fails the test after half a minute.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for 30s until %s, in vain", what)
		}
	}
}

// Of two schedulers with the same job, one runs it, and the other gets the error that it
// is locked. When the run is over, the other can run the job.
func TestLocker(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	runs := make(chan int)
	locked := make(chan error)
	release := make(chan struct{})
	var jobs []cron.Job
	for i := range 2 {
		s := scheduler(t, cron.WithDistributedLocker(gocron.NewLocker(leasehold.New(st, nil), &gocron.LockerOptions{Prefix: "jobs/"})))
		j, err := s.NewJob(cron.DurationJob(24*time.Hour), cron.NewTask(func() { runs <- i; <-release }), cron.WithName("report"),
			cron.WithEventListeners(cron.AfterLockError(func(_ uuid.UUID, _ string, err error) { locked <- err })))
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	for i := range jobs {
		if err := jobs[i].RunNow(); err != nil {
			t.Fatal(err)
		}
		if ran := <-runs; ran != i {
			t.Fatalf("scheduler %d runs the job, want %d", ran, i)
		}
		if state, err := st.Inspect(t.Context(), "jobs/report"); err != nil || !state.Held {
			t.Errorf("while the job runs its lock is %+v (%v), want it held", state, err)
		}
		if err := jobs[1-i].RunNow(); err != nil {
			t.Fatal(err)
		}
		if err := <-locked; !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("the other scheduler was refused with %v, want %v", err, leasehold.ErrBusy)
		}
		release <- struct{}{}
		soon(t, "the lock is released after the run", func() bool {
			state, err := st.Inspect(t.Context(), "jobs/report")
			return err == nil && !state.Held
		})
	}
}

// A scheduler that cannot reach the store runs no job, and reports the error to the
// job's listener. After the outage the job runs. A second unlock changes nothing.
func TestLockerInAnOutage(t *testing.T) {
	far := adaptertest.NewCut(t, nil)
	locker := gocron.NewLocker(leasehold.New(far.Store, nil), nil)
	s := scheduler(t, cron.WithDistributedLocker(locker))
	runs, locked := make(chan struct{}), make(chan error)
	j, err := s.NewJob(cron.DurationJob(24*time.Hour), cron.NewTask(func() { runs <- struct{}{} }), cron.WithName("report"),
		cron.WithEventListeners(cron.AfterLockError(func(_ uuid.UUID, _ string, err error) { locked <- err })))
	if err != nil {
		t.Fatal(err)
	}
	far.Down.Store(true)
	if err := j.RunNow(); err != nil {
		t.Fatal(err)
	}
	if err := <-locked; !errors.Is(err, adaptertest.ErrDown) {
		t.Errorf("in the outage the listener got %v, want %v", err, adaptertest.ErrDown)
	}
	far.Down.Store(false)
	if err := j.RunNow(); err != nil {
		t.Fatal(err)
	}
	<-runs

	lock, err := locker.Lock(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if err := lock.Unlock(ended); err != nil {
			t.Error(err)
		}
	}
	if state, err := far.Store.Inspect(t.Context(), "other"); err != nil || state.Held {
		t.Errorf("unlocked after its context had ended, the lock is %+v (%v), want it free", state, err)
	}
}

// The function for losses gets the name of a job whose lease is lost.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		st := memstore.New(&memstore.Options{Clock: now})
		defer st.Close()
		lost := ""
		l := gocron.NewLocker(leasehold.New(st, &leasehold.Options{Clock: now}), &gocron.LockerOptions{
			Lock: leasehold.LockOptions{MaxHold: time.Minute},
			Lost: func(job string, err error) {
				if errors.Is(err, leasehold.ErrLost) {
					lost += job
				}
			},
		})
		for i, want := range []string{"", "report"} {
			lock, err := l.Lock(t.Context(), "report")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(2*i) * time.Minute)
			lock.Unlock(t.Context())
			synctest.Wait()
			if lost != want {
				t.Errorf("jobs that lost their leases: %q, want %q", lost, want)
			}
		}
	})
}

// The schedulers of an election run jobs on the leader alone. When it resigns, the other
// leads.
func TestElector(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	var electors []*gocron.Elector
	leads := func(i int) {
		t.Helper()
		soon(t, fmt.Sprintf("elector %d leads", i), func() bool { return electors[i].IsLeader(t.Context()) == nil })
	}
	runs := make(chan int, 10)
	var jobs []cron.Job
	for i := range 2 {
		electors = append(electors, gocron.NewElector(leasehold.New(st, nil).Election("scheduler")))
		defer electors[i].Close()
		leads(0)
		s := scheduler(t, cron.WithDistributedElector(electors[i]))
		j, err := s.NewJob(cron.DurationJob(24*time.Hour), cron.NewTask(func() { runs <- i }))
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	both := func(want int) {
		t.Helper()
		for _, j := range []cron.Job{jobs[1-want], jobs[want]} {
			if err := j.RunNow(); err != nil {
				t.Fatal(err)
			}
		}
		if i := <-runs; i != want {
			t.Errorf("scheduler %d ran the job, want %d", i, want)
		}
	}
	if err := electors[1].IsLeader(t.Context()); !errors.Is(err, gocron.ErrNotLeader) {
		t.Errorf("IsLeader of the second: %v, want %v", err, gocron.ErrNotLeader)
	}
	both(0)
	if err := electors[0].Close(); err != nil {
		t.Error(err)
	}
	if err := electors[0].IsLeader(t.Context()); !errors.Is(err, gocron.ErrNotLeader) || !errors.Is(err, context.Canceled) {
		t.Errorf("after its resignation, IsLeader of the first: %v, want %v and %v", err, gocron.ErrNotLeader, context.Canceled)
	}
	leads(1)
	both(1)
}

// A scheduler whose store is down, at the start or later, does not lead, and never at the
// same time as another. It leads again after the outage.
func TestElectorInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		far := adaptertest.NewCut(t, now)
		elector := func(s *store.Store) *gocron.Elector {
			return gocron.NewElector(leasehold.New(s, &leasehold.Options{Clock: now}).Election("scheduler"))
		}
		// leads waits until e leads, and checks that the other does not meanwhile.
		leads := func(e, other *gocron.Elector) {
			t.Helper()
			for range 10000 {
				switch first, second := e.IsLeader(t.Context()), other.IsLeader(t.Context()); {
				case first == nil && second == nil:
					t.Fatal("both lead, want one")
				case first == nil:
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Fatal("it does not lead after 100s, want it to")
		}
		far.Down.Store(true)
		a := elector(far.Store)
		defer a.Close()
		time.Sleep(time.Minute)
		if err := a.IsLeader(t.Context()); !errors.Is(err, gocron.ErrNotLeader) {
			t.Errorf("while its store is down: %v, want %v", err, gocron.ErrNotLeader)
		}
		b := elector(far.Near)
		leads(b, a)
		far.Down.Store(false)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		leads(a, b)
		b = elector(far.Near)
		far.Down.Store(true)
		leads(b, a)
		far.Down.Store(false)
		time.Sleep(time.Minute)
		for range 2 {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		leads(a, b)
	})
}

// A scheduler whose process was stopped for longer than its lease does not lead when the
// process goes on, whatever runs first there.
func TestElectorAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		st := memstore.New(&memstore.Options{Clock: now})
		defer st.Close()
		var stopped atomic.Int64
		el := gocron.NewElector(leasehold.New(st, &leasehold.Options{Clock: clock.Func(func() clock.Instant {
			return now.Now().Add(time.Duration(stopped.Load()))
		})}).Election("scheduler"))
		defer el.Close()
		synctest.Wait()
		if err := el.IsLeader(t.Context()); err != nil {
			t.Fatalf("IsLeader of the only candidate: %v, want nil", err)
		}
		stopped.Store(int64(time.Hour)) // no timer has fired yet
		if err := el.IsLeader(t.Context()); !errors.Is(err, gocron.ErrNotLeader) {
			t.Errorf("IsLeader after an hour in which the process was stopped: %v, want %v", err, gocron.ErrNotLeader)
		}
	})
}

func ExampleNewLocker() {
	st := memstore.New(nil)
	defer st.Close()
	client := leasehold.New(st, nil)

	s, err := cron.NewScheduler(cron.WithDistributedLocker(gocron.NewLocker(client, &gocron.LockerOptions{
		Prefix: "jobs/",
		Lock:   leasehold.LockOptions{MinHold: 10 * time.Millisecond}, // the clocks differ by less
	})))
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan struct{})
	s.NewJob(cron.OneTimeJob(cron.OneTimeJobStartImmediately()), cron.NewTask(func() {
		fmt.Println("the report is made once, on one machine")
		close(done)
	}), cron.WithName("report"))
	s.Start()
	<-done
	s.Shutdown()
	// Output: the report is made once, on one machine
}
