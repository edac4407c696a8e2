package contend

import (
	"context"
	"fmt"
	"time"
)

// Contest is one measurement of one lock.
type Contest struct {
	Service
	Lock       string // its name, new for each contest
	Processes  int
	Goroutines int           // of each
	Hold       time.Duration // how long a turn takes
	Warm, For  time.Duration
	// Kept makes another process hold the lock all the time, so that no worker gets it.
	Kept bool
}

// assembly is the longest time until all workers know what to do.
const assembly = 50 * time.Millisecond

func (c Contest) spec(do string) Spec {
	return Spec{Do: do, Kind: c.Kind.Name, Addrs: c.Addrs, Lock: c.Lock, Goroutines: c.Goroutines, Hold: c.Hold}
}

// attempts is how often a contest is repeated until the servers were read in time. If
// the machine stood still, their figures do not belong to the turns that were counted.
// The last attempt counts in any case.
const attempts = 3

// Run measures, and blocks until all workers have ended.
func (c Contest) Run(ctx context.Context) (Figures, error) {
	for again := 1; ; again++ {
		f, late, err := c.once(ctx)
		if err != nil || late < c.For/10 || again == attempts {
			return f, err
		}
		c.Lock += "-again"
	}
}

// once measures once, and returns how late the servers were read.
func (c Contest) once(ctx context.Context) (f Figures, late time.Duration, err error) {
	specs := make([]Spec, c.Processes)
	for i := range specs {
		specs[i] = c.spec(Loop)
	}
	fleet, err := Start(ctx, specs)
	if err != nil {
		return f, 0, err
	}
	defer fleet.End()
	var holder *Member
	if c.Kept {
		if holder, err = c.holder(ctx); err != nil {
			return f, 0, err
		}
		defer holder.End()
	}
	begin := Now() + int64(assembly)
	from := begin + int64(c.Warm)
	sp := span{Begin: begin, From: from, To: from + int64(c.For)}
	if err := fleet.each(func(m *Member) error { return m.tell(sp) }); err != nil {
		return f, 0, err
	}
	use, late, err := c.use(ctx, sp)
	if err != nil {
		return f, 0, err
	}
	logs, h, err := fleet.collect()
	if err != nil {
		return f, 0, err
	}
	fleet.each(func(m *Member) error {
		m.dismiss()
		return nil
	})
	if holder != nil {
		hold, err := holder.release()
		if err != nil {
			return f, 0, err
		}
		logs = append(logs, Log{Process: c.Processes, Holds: []Hold{hold}})
	}
	f = Merge(logs, c.Processes, max(c.Kind.Limit, 1), sp.From, sp.To)
	f.Goroutines = max(c.Goroutines, 1)
	f.GaveUp, f.Errors, f.Failed = h.GaveUp, h.Errors, h.Failed
	f.Use = use
	f.ClientCPU = h.CPU
	return f, late, nil
}

// use returns what the servers did within the window, and how late they were read.
func (c Contest) use(ctx context.Context, sp span) (u Use, late time.Duration, err error) {
	if err := sleepUntil(ctx, sp.From); err != nil {
		return u, 0, err
	}
	before, err := c.read(ctx)
	if err != nil {
		return u, 0, err
	}
	if err := sleepUntil(ctx, sp.To); err != nil {
		return u, 0, err
	}
	after, err := c.read(ctx)
	if err != nil {
		return u, 0, err
	}
	late = time.Duration(max(before.at-sp.From, after.at-sp.To))
	return after.since(before, time.Duration(sp.To-sp.From)), late, nil
}

func sleepUntil(ctx context.Context, at int64) error {
	select {
	case <-time.After(until(at)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// collect merges the results of all workers.
func (f Fleet) collect() (logs []Log, sum heading, err error) {
	headings, holds := make([]heading, len(f)), make([][][]Hold, len(f))
	at := map[*Member]int{}
	for i, m := range f {
		at[m] = i
	}
	err = f.each(func(m *Member) (err error) {
		i := at[m]
		headings[i], holds[i], err = m.collect()
		return err
	})
	if err != nil {
		return nil, sum, err
	}
	for i, h := range headings {
		for g := range holds[i] {
			logs = append(logs, Log{Process: i, Holds: holds[i][g], Asking: h.Asking[g]})
		}
		sum.CPU += h.CPU
		sum.GaveUp += h.GaveUp
		sum.Errors += h.Errors
		if sum.Failed == "" {
			sum.Failed = h.Failed
		}
	}
	return logs, sum, nil
}

// holder starts a process that holds the lock, and waits until it does.
func (c Contest) holder(ctx context.Context) (*Member, error) {
	one, err := Start(ctx, []Spec{c.spec(Keep)})
	if err != nil {
		return nil, err
	}
	m := one[0]
	if err = m.tell(span{}); err == nil {
		err = m.hear(held)
	}
	if err != nil {
		m.End()
		return nil, err
	}
	return m, nil
}

// release makes a holder release the lock, and returns its turn.
func (m *Member) release() (Hold, error) {
	if _, err := fmt.Fprintln(m.in, release); err != nil {
		return Hold{}, err
	}
	return m.one()
}

// one returns the turn of a worker that has exactly one.
func (m *Member) one() (Hold, error) {
	h, holds, err := m.collect()
	if err != nil {
		return Hold{}, err
	}
	if h.Errors > 0 {
		return Hold{}, fmt.Errorf("a worker failed: %s", h.Failed)
	}
	m.dismiss()
	return holds[0][0], nil
}
