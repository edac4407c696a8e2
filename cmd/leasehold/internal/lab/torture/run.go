package torture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/history"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// Config says what to do to which store.
type Config struct {
	Procs      int
	Goroutines int // of each process; zero: the default
	// Crowd is how many goroutines of the first process want locks of their own beside
	// those: they wait for one lock and give up together, and read another one together.
	// An operator breaks leases by what is shown of them. Zero: there is no crowd.
	Crowd int
	Locks []string
	Kinds []store.Kind // one for each lock; nil: all are mutexes
	TTL   time.Duration
	For   time.Duration // how long there are faults
	Seed  uint64        // of the faults, and of what the workers do
	Store []string      // the store, for the workers' Open
	Dir   string        // for the histories; made if need be, else empty
	// Nodes is how many servers decide by their majority. Zero: one does.
	Nodes int
	// Idle is how long somebody may wait for a lock that is available, while faults go
	// on. Zero: that is not judged.
	Idle time.Duration
	// Command makes a process that will call Work. Its input and output are
	// set by Run.
	Command func() *exec.Cmd
	// Disturb, if not nil, does more than Run does by itself, for as long as
	// its ctx lasts. When it returns, all is as it was. It notes each fault
	// when it begins, and calls over when it ends.
	Disturb func(ctx context.Context, note func(on, what string) (over func()))
	// Progress, if not nil, is called several times a second, by one goroutine
	// at a time. It must not block for long.
	Progress func(Progress)

	patience time.Duration                   // with workers that are to end; zero: as with calm
	guard    func(http.Handler) http.Handler // before the guarded resource; nil: package httpguard
}

// Progress is how far a run has come.
type Progress struct {
	Phase                                string // "starting", "faults", "calm", "stopping", "checking"
	Elapsed                              time.Duration
	Granted, Unknown, Lost, Kills, Stops int
}

// run is one run.
type run struct {
	Config
	h      *history.History
	behind *guarded
	began  time.Time
	steady func() error
	phase  atomic.Value // string

	granted, unknown, lost, kills, stops atomic.Int64

	telling sync.Mutex

	mu    sync.Mutex
	slots []*process
	err   error // what made it impossible to go on
	abort context.CancelFunc
}

// Run does it, and has the history checked. An error means that there is no
// verdict; the report is then nil. When ctx ends, the run is cut short, and
// what was recorded is checked.
func Run(ctx context.Context, c Config) (*Report, error) {
	if c.Goroutines == 0 {
		c.Goroutines = Goroutines
	}
	if err := prepare(c.Dir); err != nil {
		return nil, err
	}
	r := &run{Config: c, h: history.New(c.Locks), began: time.Now(), steady: history.Steady()}
	r.h.Kinds, r.h.Several = c.Kinds, c.Nodes > 1
	var err error
	if r.behind, err = serveGuarded(c.guard); err != nil {
		return nil, err
	}
	working, abort := context.WithCancel(ctx)
	defer abort()
	r.abort = abort
	r.phase.Store("starting")
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { r.watch(ended) })
	hung := r.work(working)
	r.h.Guarded = r.behind.end()
	close(ended)
	watching.Wait()
	if err := r.failed(); err != nil {
		return nil, err
	}
	r.enter("checking")
	return r.report(ctx, hung)
}

// work goes through the phases. When it returns every process is gone, and all
// it wrote is in the history; hung are those that had to be forced.
func (r *run) work(ctx context.Context) (hung []string) {
	defer r.killAll()
	if !r.startAll(ctx) {
		return nil
	}
	r.enter("faults")
	faults, over := context.WithTimeout(ctx, r.For)
	defer over()
	var all sync.WaitGroup
	for slot := range r.slots {
		if r.crowdOf(slot) == 0 { // what the crowd does to its process is enough
			all.Go(func() { r.disturb(faults, slot) })
		}
	}
	if r.Disturb != nil {
		all.Go(func() {
			r.Disturb(faults, func(on, what string) func() {
				f := r.h.Begin(on, what)
				return func() { r.h.Over(f) }
			})
		})
	}
	all.Wait()
	<-faults.Done()
	if ctx.Err() == nil {
		r.enter("calm")
		r.h.Calm = history.Now()
		for end := time.Now().Add(calm(r.TTL)); len(r.h.Again()) < len(r.Locks) && time.Now().Before(end) && clock.Sleep(ctx, poll); {
		}
		if ctx.Err() != nil && len(r.h.Again()) < len(r.Locks) {
			r.h.Calm = 0 // cut short: it says nothing
		}
	}
	r.enter("stopping")
	return r.stopAll()
}

const poll = 50 * time.Millisecond

// crowdOf returns how large the crowd in the process of a slot is.
func (r *run) crowdOf(slot int) int {
	if slot != 0 {
		return 0
	}
	return r.Crowd
}

// told is how late a holder may be told of a loss. The machine runs everything at once.
func told(ttl time.Duration) time.Duration { return max(ttl/2, 400*time.Millisecond) }

// startAll starts the processes and waits until all work.
func (r *run) startAll(ctx context.Context) bool {
	for i := range r.Procs {
		w, err := start(plan{
			Proc: i + 1, Life: 1, Seed: r.Seed, Goroutines: r.Goroutines, Crowd: r.crowdOf(i), Locks: r.Locks, Kinds: r.Kinds, TTL: r.TTL,
			Store: r.Store, Resource: filepath.Join(r.Dir, "resource.jsonl"), Guard: r.behind.url,
		}, r.Dir, r.Command)
		if err != nil {
			r.fail(err)
			return false
		}
		r.mu.Lock()
		r.slots = append(r.slots, w)
		r.mu.Unlock()
	}
	const patience = 30 * time.Second
	for end := time.Now().Add(patience); ; {
		waiting := ""
		for slot := range r.Procs {
			if up, why := r.current(slot).ready(); !up {
				waiting = fmt.Sprintf("worker %d did not begin within %v: %s", slot+1, patience, why)
			}
		}
		switch {
		case waiting == "":
			return true
		case time.Now().After(end):
			r.fail(errors.New(waiting))
			return false
		case !clock.Sleep(ctx, poll):
			return false
		}
	}
}

// stopAll asks the processes to end, and forces those that do not.
func (r *run) stopAll() (hung []string) {
	patience := cmp.Or(r.patience, calm(r.TTL))
	end := time.After(patience)
	for slot := range r.Procs {
		r.current(slot).stdin.Close()
	}
	for slot := range r.Procs {
		w := r.current(slot)
		select {
		case <-w.done:
			continue
		case <-end:
			end = closed // for the others too
		}
		w.mu.Lock()
		w.killed, w.dumped = history.Now(), true
		w.mu.Unlock()
		w.dump()
		select {
		case <-w.done:
		case <-time.After(5 * time.Second):
		}
		hung = append(hung, fmt.Sprintf("worker %d had not released its locks and ended %v after it was asked to: see %s", w.Proc, patience, w.log))
	}
	return hung
}

var closed = func() <-chan time.Time { c := make(chan time.Time); close(c); return c }()

// killAll ends what is still there, and reads the rest of what was written.
func (r *run) killAll() {
	r.mu.Lock()
	slots := r.slots
	r.mu.Unlock()
	for _, w := range slots {
		if w.running() {
			w.kill()
		}
		r.bury(w)
	}
}

// watch reads what the processes write, sees that they are there, and says how
// far the run has come, until ended is closed.
func (r *run) watch(ended <-chan struct{}) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ended:
			return
		}
		r.mu.Lock()
		slots := append([]*process(nil), r.slots...)
		r.mu.Unlock()
		for _, w := range slots {
			gone := !w.running() // before reading: then all of it is there
			if err := w.read(r.add(w)); err != nil {
				r.fail(err)
			}
			if gone {
				if err := w.ended(); err != nil {
					r.fail(err)
				}
			}
		}
		r.tell()
	}
}

func (r *run) enter(phase string) {
	r.phase.Store(phase)
	r.tell()
}

func (r *run) tell() {
	r.telling.Lock()
	defer r.telling.Unlock()
	if r.Progress != nil {
		r.Progress(Progress{
			Phase: r.phase.Load().(string), Elapsed: time.Since(r.began),
			Granted: int(r.granted.Load()), Unknown: int(r.unknown.Load()), Lost: int(r.lost.Load()),
			Kills: int(r.kills.Load()), Stops: int(r.stops.Load()),
		})
	}
}

// current is the process that is now in the slot.
func (r *run) current(slot int) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slots[slot]
}

// fail ends the run without a verdict.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.abort()
}

func (r *run) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// prepare makes dir, or sees that nothing is in it.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty: name a directory that is, or that does not exist yet", dir)
	}
	return err
}
