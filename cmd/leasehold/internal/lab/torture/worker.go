package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/history"
	"github.com/leasehold-dev/leasehold/store"
)

// Open opens the store that a Config names by urls.
type Open func(ctx context.Context, urls []string) (*store.Store, error)

// Work is a worker process: it acquires and releases locks until in, where Run
// has put the plan, ends. It returns when all it holds is released, or with
// what kept it from working.
func Work(in io.Reader, open Open) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	var p plan
	if err == nil {
		err = json.Unmarshal(line, &p)
	}
	if err != nil {
		return fmt.Errorf("this is started by \"lab torture\" only, which says on standard input what to do: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		io.Copy(io.Discard, lines)
		stop()
	}()
	w := worker{plan: p}
	if w.record, err = history.NewRecorder(p.History); err != nil {
		return err
	}
	defer w.record.Close()
	if w.resource, err = history.OpenResource(p.Resource); err != nil {
		return err
	}
	defer w.resource.Close()
	st := w.open(ctx, open)
	if st == nil {
		return nil
	}
	client := leasehold.New(st, nil)
	w.write(history.Event{Op: history.Up})
	var all sync.WaitGroup
	hammers := func(g int, round func(*hammer, context.Context)) {
		h := hammer{worker: &w, g: g, client: client, rng: rand.New(rand.NewPCG(p.Seed, uint64(p.Proc)<<32|uint64(p.Life)<<16|uint64(g)))}
		for ctx.Err() == nil && w.broken() == nil {
			round(&h, ctx)
		}
	}
	for g := range p.Goroutines {
		all.Go(func() { hammers(g, (*hammer).round) })
	}
	if p.Crowd > 0 {
		all.Go(func() { hammers(p.Goroutines, (*hammer).rely) })
		all.Go(func() { w.read(ctx, client) })
		all.Go(func() { w.operate(ctx, client, st) })
	}
	all.Wait()
	w.write(history.Event{Op: history.Down})
	return errors.Join(w.broken(), st.Close())
}

// worker is what the goroutines of a process share.
type worker struct {
	plan
	record   *history.Recorder
	resource *history.Resource
	failed   atomic.Pointer[error] // what made it impossible to go on
}

// write records e as of now, unless e says when.
func (w *worker) write(e history.Event) {
	if e.At == 0 {
		e.At = history.Now()
	}
	if err := w.record.Write(e); err != nil {
		w.fail(err)
	}
}

func (w *worker) fail(err error) { w.failed.CompareAndSwap(nil, &err) }

func (w *worker) broken() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// open tries until it succeeds: a process may be started in the middle of the
// trouble. It is nil when ctx ended before.
func (w *worker) open(ctx context.Context, open Open) *store.Store {
	for ctx.Err() == nil {
		st, err := open(ctx, w.Store)
		if err == nil {
			return st
		}
		w.write(history.Event{Op: history.Trouble, Err: err.Error()})
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil
}
