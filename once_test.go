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
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
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

// Times shortly before and after a tick belong to the same tick. MinHold bounds how
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

		longer := leasehold.Tick{Every: time.Hour, MinHold: 3 * time.Hour}
		if !runs(longer, at(10*time.Hour)) {
			t.Error("the job did not run in the tick of 22:00")
		}
		time.Sleep(3*time.Hour - time.Minute)
		if runs(longer, at(10*time.Hour)) { // a clock that is behind by almost three hours
			t.Error("the job ran again before MinHold was over")
		}
		time.Sleep(2 * time.Minute)
		if !runs(longer, at(10*time.Hour)) {
			t.Error("the job did not run after MinHold was over")
		}
	})
}

// A run that comes later than half a period takes the next tick, so that is skipped when it is due.
// Once says which tick was run, by whom and when. An offset moves the ticks, so that such a run is
// of the tick it is late for.
func TestSkippedTicks(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		noon := time.Now().Truncate(24 * time.Hour).Add(36 * time.Hour)
		time.Sleep(time.Until(noon))
		var skips []leasehold.Skip
		once := func(tick leasehold.Tick, run func()) bool {
			t.Helper()
			tick.OnSkip = func(s leasehold.Skip) { skips = append(skips, s) }
			ran, err := b.c.Once(t.Context(), "job", tick, func(context.Context, *leasehold.Lease) error { run(); return nil })
			if err != nil {
				t.Error(err)
			}
			return ran
		}
		for _, c := range []struct {
			offset time.Duration
			ticks  []time.Duration // of the runs at noon and 50 minutes later, and of the skip an hour later
		}{
			{0, []time.Duration{0, time.Hour}},
			{25 * time.Minute, []time.Duration{25 * time.Minute}},
		} {
			tick := leasehold.Tick{Every: time.Hour, Offset: c.offset}
			skips = nil
			if !once(tick, func() {}) {
				t.Errorf("offset %v: no run at noon", c.offset)
			}
			time.Sleep(50 * time.Minute)
			if ran := once(tick, func() {}); ran != (c.offset == 0) {
				t.Errorf("offset %v: 50 minutes late: ran %v", c.offset, ran)
			}
			time.Sleep(10 * time.Minute)
			if ran := once(tick, func() {}); ran != (c.offset != 0) {
				t.Errorf("offset %v: an hour later: ran %v", c.offset, ran)
			}
			if len(skips) != 1 {
				t.Fatalf("offset %v: skipped %+v, want one", c.offset, skips)
			}
			by, tickOf := noon, noon.Add(c.offset)
			if c.offset == 0 {
				by, tickOf = noon.Add(50*time.Minute), noon.Add(time.Hour)
			}
			if s := skips[0]; s.Job != "job" || !s.Tick.Equal(tickOf) || s.By.Since.Sub(by).Abs() > time.Second || s.By.PID == 0 || s.Running {
				t.Errorf("offset %v: skipped %+v, want the tick of %v, run at %v", c.offset, s, tickOf, by)
			}
			noon = noon.Add(24 * time.Hour)
			time.Sleep(time.Until(noon))
		}
		skips = nil
		tick := leasehold.Tick{Every: time.Hour}
		once(tick, func() { once(tick, func() { t.Error("ran beside itself") }) })
		if len(skips) != 1 || !skips[0].Running {
			t.Errorf("within a run: skipped %+v, want one because of a run that goes on", skips)
		}
	})
}

// However many ticks were run, the store has a few records of a job, whose names are used again.
func TestFewRecordsOfTicks(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		names := map[string]bool{}
		b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
			names[r.Name] = true
			return b.store.Engine.Acquire(ctx, r)
		})
		for _, tick := range []leasehold.Tick{{Every: time.Second}, {Every: time.Minute, MinHold: time.Minute}, {Every: time.Hour, MinHold: 10 * time.Hour}} {
			clear(names)
			runs := 0
			for range 1000 {
				ran, err := b.c.Once(t.Context(), "job", tick, func(context.Context, *leasehold.Lease) error { runs++; return nil })
				if !ran || err != nil {
					t.Fatalf("%+v, after %d runs: ran %v, %v", tick, runs, ran, err)
				}
				time.Sleep(tick.Every)
			}
			if most := max(8, 4*int(tick.MinHold/tick.Every)) + 1; len(names) > most {
				t.Errorf("%+v: %d names after %d runs, want %d at most", tick, len(names), runs, most)
			}
		}
	})
}

// What the ticks of a job leave on a Redis server are a few small keys, however many were run.
func TestTicksLeaveFewKeys(t *testing.T) {
	server := redistest.Start(t)
	st, err := redisstore.Open(t.Context(), server.URL(), patient())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c := leasehold.New(st, nil)
	before := len(server.Keys(t))
	ran := 0
	for ran < 40 {
		ok, err := c.Once(t.Context(), "job", leasehold.Tick{Every: 50 * time.Millisecond}, func(context.Context, *leasehold.Lease) error { return nil })
		if err != nil && !errors.Is(err, leasehold.ErrLost) { // on a slow machine the tick may be over
			t.Fatal(err)
		}
		if ok {
			ran++
		}
		time.Sleep(10 * time.Millisecond) // until the next tick
	}
	if left := len(server.Keys(t)) - before; left > 2*9 {
		t.Errorf("%d more keys than before after %d runs, want 18 at most: %v", left, ran, server.Keys(t))
	}
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
// returns ErrBusy for the next one. MaxHold ends a run.
func TestRunsDoNotOverlap(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		tick := leasehold.Tick{Every: time.Hour, MaxHold: 90 * time.Minute}
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
		if err := <-ended; !errors.Is(err, leasehold.ErrLost) || time.Since(start) > tick.MaxHold {
			t.Errorf("the run ended after %v with %v, want ErrLost within %v", time.Since(start), err, tick.MaxHold)
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
			return b.store.Engine.Acquire(ctx, r)
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
		c := leasehold.New(store.New(bounded{b.store}), &leasehold.Options{Clock: b.clock})
		for _, x := range []struct {
			tick leasehold.Tick
			is   error
			says string
		}{
			{leasehold.Tick{}, leasehold.ErrInvalid, "Every is 0s"},
			{leasehold.Tick{Every: -time.Second}, leasehold.ErrInvalid, "Every is -1s"},
			{leasehold.Tick{Every: time.Second, Offset: -1}, leasehold.ErrInvalid, "Offset is -1ns"},
			{leasehold.Tick{Every: time.Second, Offset: time.Second}, leasehold.ErrInvalid, "Offset is 1s"},
			{leasehold.Tick{Every: time.Minute, MinHold: time.Second}, leasehold.ErrInvalid, "MinHold is 1s"},
			{leasehold.Tick{Every: time.Second, MaxHold: -time.Second}, leasehold.ErrInvalid, "MaxHold"},
			{leasehold.Tick{Every: 31 * time.Second}, leasehold.ErrInvalid, "cannot remember for 1m2s"},
		} {
			ran, err := c.Once(t.Context(), "job", x.tick, func(context.Context, *leasehold.Lease) error { return nil })
			if ran || !errors.Is(err, x.is) || !strings.Contains(err.Error(), x.says) {
				t.Errorf("%+v: ran %v, %v, want %v that says %q", x.tick, ran, err, x.is, x.says)
			}
		}
		if n := b.store.called("acquire"); n != 0 {
			t.Errorf("%d requests were sent, want none", n)
		}
		ran, err := c.Once(t.Context(), "job", leasehold.Tick{Every: time.Second, Require: store.Consensus}, func(context.Context, *leasehold.Lease) error { return nil })
		if ran || !errors.Is(err, leasehold.ErrUnsupported) || !strings.Contains(err.Error(), "consensus") {
			t.Errorf("a tick that requires more than the store can give: ran %v, %v, want ErrUnsupported that names the class", ran, err)
		}
		if ran, err := c.Once(t.Context(), "job", leasehold.Tick{Every: 30 * time.Second}, func(context.Context, *leasehold.Lease) error { return nil }); !ran || err != nil {
			t.Errorf("a tick that the store can remember: ran %v, %v, want a run", ran, err)
		}
	})
}
