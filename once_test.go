package leasehold_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// ahead returns a clock that is ahead of the right one by d.
func ahead(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(d) }
}

// untilTick sleeps until the clock shows the next multiple of every, less early.
func untilTick(clock func() time.Time, every time.Duration, early time.Duration) {
	now := clock()
	time.Sleep(now.Truncate(every).Add(every - early).Sub(now))
}

// Machines whose clocks differ by up to a period start a job twice at each tick of their own
// clocks, some of them a little early. The job runs once per tick.
func TestOnce(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		const ticks, every = 50, 5 * time.Minute
		var mu sync.Mutex
		runs := make(map[string]int)
		var last leasehold.Token
		var wg sync.WaitGroup
		for n, skew := range []time.Duration{0, time.Minute, -time.Minute, 149 * time.Second, -149 * time.Second, time.Second} {
			client, clock := b.strangers(), ahead(skew)
			tick := leasehold.Tick{Every: every}.ByClock(clock)
			wg.Go(func() {
				for range ticks {
					untilTick(clock, every, time.Duration(n%2)*100*time.Millisecond)
					name := clock().Round(every).String()
					for range 2 {
						ran, err := client.Once(t.Context(), "job", tick, func(_ context.Context, l *leasehold.Lease) error {
							mu.Lock()
							defer mu.Unlock()
							if runs[name]++; l.Token() <= last {
								t.Errorf("token %v, want more than the last one, %v", l.Token(), last)
							}
							last = l.Token()
							return nil // a very short run
						})
						if err != nil && !errors.Is(err, leasehold.ErrBusy) || ran && err != nil {
							t.Errorf("tick %s: ran %v with %v, want no error, or ErrBusy if it did not run", name, ran, err)
						}
					}
					time.Sleep(every / 2) // past the tick
				}
			})
		}
		wg.Wait()
		if len(runs) != ticks && len(runs) != ticks+1 {
			t.Errorf("the job ran in %d ticks, want %d or one more", len(runs), ticks)
		}
		for name, n := range runs {
			if n != 1 {
				t.Errorf("the job ran %d times in the tick of %s, want once", n, name)
			}
		}
	})
}

// Times shortly before and after a tick belong to the same tick. LockAtLeastFor bounds how
// far clocks may differ: beyond it, a job runs twice in a tick.
func TestTicks(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		runs := func(tick leasehold.Tick, clock func() time.Time) bool {
			t.Helper()
			ran, err := b.c.Once(t.Context(), "job", tick.ByClock(clock), func(context.Context, *leasehold.Lease) error { return nil })
			if err != nil {
				t.Error(err)
			}
			return ran
		}
		noon := time.Now().Truncate(24 * time.Hour).Add(36 * time.Hour)
		at := func(d time.Duration) func() time.Time { return func() time.Time { return noon.Add(d) } }
		hourly := leasehold.Tick{Every: time.Hour}
		if !runs(hourly, at(-100*time.Millisecond)) || runs(hourly, at(100*time.Millisecond)) || runs(hourly, at(29*time.Minute)) {
			t.Error("11:59:59.9, 12:00:00.1 and 12:29 are not one tick, want the job to run once, at the first")
		}
		if !runs(hourly, at(31*time.Minute)) || runs(hourly, at(time.Hour)) {
			t.Error("12:31 and 13:00 are not one tick after that of 12:00, want the job to run once, at 12:31")
		}

		longer := leasehold.Tick{Every: time.Hour, LockAtLeastFor: 3 * time.Hour}
		if !runs(longer, at(10*time.Hour)) {
			t.Error("the job did not run in the tick of 22:00")
		}
		time.Sleep(3*time.Hour - time.Minute)
		if runs(longer, at(10*time.Hour)) { // a clock that is behind by almost three hours
			t.Error("the job ran again before LockAtLeastFor was over")
		}
		time.Sleep(2 * time.Minute)
		if !runs(longer, at(10*time.Hour)) {
			t.Error("the job did not run after LockAtLeastFor was over")
		}
	})
}

// The tick is recorded before the function is called, and stays recorded if that panics.
func TestCrashedRunIsNotRepeated(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		tick := leasehold.Tick{Every: time.Hour}
		func() {
			defer func() { recover() }()
			b.c.Once(t.Context(), "job", tick, func(context.Context, *leasehold.Lease) error {
				if list, err := b.store.List(t.Context(), "job@"); err != nil || len(list) != 1 {
					t.Errorf("as the run begins the store has %v, %v, want one tick of the job", list, err)
				}
				panic("crashed")
			})
		}()
		ran, err := b.strangers().Once(t.Context(), "job", tick, func(context.Context, *leasehold.Lease) error { return nil })
		if ran || err != nil || b.held("job") {
			t.Errorf("after a crash: ran again %v, %v, want neither; job held %v, want free", ran, err, b.held("job"))
		}
	})
}

// Runs of a job do not overlap. While the job runs, Once does nothing for the same tick, and
// returns ErrBusy for the next one. LockAtMostFor ends a run.
func TestRunsDoNotOverlap(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		tick := leasehold.Tick{Every: time.Hour, LockAtMostFor: 90 * time.Minute}
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
		began := make(chan struct{})
		ended := make(chan error)
		go func() {
			_, err := b.c.Once(t.Context(), "job", tick, func(ctx context.Context, _ *leasehold.Lease) error {
				close(began)
				<-ctx.Done()
				return nil
			})
			ended <- err
		}()
		start := time.Now()
		<-began
		never := func(context.Context, *leasehold.Lease) error { t.Error("the job ran beside itself"); return nil }
		other := b.strangers()
		if ran, err := other.Once(t.Context(), "job", tick, never); ran || err != nil {
			t.Errorf("the same tick: ran %v, %v, want neither a run nor an error", ran, err)
		}
		time.Sleep(time.Hour)
		if ran, err := other.Once(t.Context(), "job", tick, never); ran || !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("the next tick: ran %v, %v, want ErrBusy", ran, err)
		}
		if err := <-ended; !errors.Is(err, leasehold.ErrLost) || time.Since(start) > tick.LockAtMostFor {
			t.Errorf("the run ended after %v with %v, want ErrLost within %v", time.Since(start), err, tick.LockAtMostFor)
		}
	})
}

// A machine that is held up until the tick is over does not run the job, since by then the
// store may have forgotten that another machine ran it.
func TestLateRun(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
			if strings.HasPrefix(r.Name, "job@") {
				time.Sleep(time.Hour)
			}
			return b.store.Store.Acquire(ctx, r)
		})
		ran, err := b.c.Once(t.Context(), "job", leasehold.Tick{Every: time.Hour}, func(context.Context, *leasehold.Lease) error { return nil })
		if ran || !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("late by an hour: ran %v, %v, want ErrLost", ran, err)
		}
	})
}

// A Tick that makes no sense, or that the store cannot remember for long enough, is
// refused before anything is sent.
func TestTicksAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		c := leasehold.New(bounded{b.store}, &leasehold.Options{Clock: b.clock})
		for _, x := range []struct {
			tick leasehold.Tick
			is   error
			says string
		}{
			{leasehold.Tick{}, leasehold.ErrInvalid, "Every is 0s"},
			{leasehold.Tick{Every: -time.Second}, leasehold.ErrInvalid, "Every is -1s"},
			{leasehold.Tick{Every: time.Minute, LockAtLeastFor: time.Second}, leasehold.ErrInvalid, "LockAtLeastFor is 1s"},
			{leasehold.Tick{Every: time.Second, LockAtMostFor: -time.Second}, leasehold.ErrInvalid, "MaxHold"},
			{leasehold.Tick{Every: 31 * time.Second}, leasehold.ErrInvalid, "cannot remember for 1m2s"},
			{leasehold.Tick{Every: time.Second, Require: store.Consensus}, leasehold.ErrUnsupported, "consensus"},
		} {
			ran, err := c.Once(t.Context(), "job", x.tick, func(context.Context, *leasehold.Lease) error { return nil })
			if ran || !errors.Is(err, x.is) || !strings.Contains(err.Error(), x.says) {
				t.Errorf("%+v: ran %v, %v, want %v that says %q", x.tick, ran, err, x.is, x.says)
			}
		}
		if n := b.store.called("acquire"); n != 0 {
			t.Errorf("%d requests were sent, want none", n)
		}
		if ran, err := c.Once(t.Context(), "job", leasehold.Tick{Every: 30 * time.Second}, func(context.Context, *leasehold.Lease) error { return nil }); !ran || err != nil {
			t.Errorf("a tick that the store can remember: ran %v, %v, want a run", ran, err)
		}
	})
}
