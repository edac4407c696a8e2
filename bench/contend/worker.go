package contend

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// parting is how long turns continue after the window. leaving is how long the worker
// waits for goroutines that do not end by themselves.
const (
	parting = 20 * time.Millisecond
	leaving = time.Second
)

// Main runs the worker.
func Main(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	var s Spec
	if err := readJSON(lines, &s); err != nil {
		return err
	}
	if s.Do == Stand {
		return s.stand(follow(lines), out)
	}
	kind, ok := locks.ContendedNamed(s.Kind)
	if !ok {
		return fmt.Errorf("there is no implementation %q", s.Kind)
	}
	ctx := context.Background()
	client, err := open(ctx, kind, s.Addrs)
	if err != nil {
		return fmt.Errorf("%s: open: %w", s.Kind, err)
	}
	fmt.Fprintln(out, ready)
	var sp span
	if err := readJSON(lines, &sp); err != nil {
		return err
	}
	told := follow(lines)
	if s.Do == Keep {
		err = s.keep(ctx, client, told, out)
		client.Close()
		return err
	}
	workers := make([]*worker, max(s.Goroutines, 1))
	for i := range workers {
		workers[i] = &worker{pair: client.Pair(s.Lock), hold: s.Hold}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	time.Sleep(until(sp.Begin))
	for _, w := range workers {
		wg.Go(func() { w.loop(ctx) })
	}
	ended := make(chan struct{})
	go func() {
		wg.Wait()
		close(ended)
	}()
	h := heading{}
	time.Sleep(until(sp.From))
	h.CPU = -load.CPUTime()
	time.Sleep(until(sp.To))
	h.CPU += load.CPUTime()
	asking := make([]int64, len(workers))
	for i, w := range workers {
		asking[i] = w.since()
	}
	time.Sleep(parting)
	cancel()
	select {
	case <-ended:
	case <-time.After(leaving): // the implementation cannot cancel a wait
	}
	err = report(out, h, asking, workers)
	// Close, so that waiters see a release and not only a lost connection.
	closed := make(chan struct{})
	go func() {
		client.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(leaving):
	}
	return err
}

// opening is how long a worker tries to open its client. A hundred processes that start
// at once on few processors delay each other, and that is not measured.
const opening = 30 * time.Second

func open(ctx context.Context, kind locks.Kind, addrs []string) (locks.Client, error) {
	for end := Now() + int64(opening); ; time.Sleep(50 * time.Millisecond) {
		client, err := kind.Open(ctx, addrs)
		if err == nil || errors.Is(err, syscall.ECONNREFUSED) || Now() > end {
			return client, err
		}
	}
}

// follow passes on the lines of the parent, and ends this process when the parent ends.
func follow(lines *bufio.Reader) <-chan string {
	told := make(chan string)
	go func() {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				os.Exit(0)
			}
			told <- line[:len(line)-1]
		}
	}()
	return told
}

func readJSON(lines *bufio.Reader, into any) error {
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

// keep holds the lock until it is told to release it.
func (s Spec) keep(ctx context.Context, client locks.Client, told <-chan string, out io.Writer) error {
	pair := client.Pair(s.Lock)
	h := Hold{Asked: Now()}
	if err := locks.Insist(ctx, pair.Lock); err != nil {
		return err
	}
	h.Got = Now()
	fmt.Fprintln(out, held)
	<-told
	h.Freed = Now()
	err := pair.Unlock(ctx)
	return reportOne(out, h, err)
}

// worker is one goroutine's state.
type worker struct {
	pair load.Pair
	hold time.Duration

	mu     sync.Mutex // the measurement may end at any moment
	holds  []Hold
	asking int64
	gaveUp int
	errors int
	failed error
}

// errorPause avoids a busy loop if attempts fail at once.
const errorPause = time.Millisecond

func (w *worker) loop(ctx context.Context) {
	for ctx.Err() == nil {
		asked := Now()
		w.note(func() { w.asking = asked })
		for {
			err := w.pair.Lock(ctx)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
			w.refused(err)
		}
		h := Hold{Asked: asked, Got: Now(), Freed: Never}
		w.note(func() { w.asking, w.holds = 0, append(w.holds, h) })
		if w.hold > 0 {
			time.Sleep(w.hold)
		}
		w.mu.Lock()
		w.holds[len(w.holds)-1].Freed = Now()
		w.mu.Unlock()
		if err := w.pair.Unlock(context.WithoutCancel(ctx)); err != nil {
			w.trouble(fmt.Errorf("unlock: %w", err))
		}
	}
}

// refused notes why a lock was not granted. It is no error if the implementation gave
// up after its usual wait: the worker calls it again.
func (w *worker) refused(err error) {
	if locks.GaveUp(err) {
		w.note(func() { w.gaveUp++ })
		return
	}
	w.trouble(fmt.Errorf("lock: %w", err))
}

func (w *worker) trouble(err error) {
	w.note(func() {
		if w.errors++; w.failed == nil {
			w.failed = err
		}
	})
	time.Sleep(errorPause)
}

func (w *worker) note(what func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what()
}

func (w *worker) since() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asking
}

// report writes the records of all goroutines, which may go on meanwhile.
func report(out io.Writer, h heading, asking []int64, workers []*worker) error {
	h.Asking = asking
	all := make([][]Hold, len(workers))
	for i, w := range workers {
		w.note(func() {
			all[i] = append(all[i], w.holds...)
			h.GaveUp += w.gaveUp
			h.Errors += w.errors
			if h.Failed == "" && w.failed != nil {
				h.Failed = w.failed.Error()
			}
		})
		h.Turns = append(h.Turns, len(all[i]))
	}
	b := bufio.NewWriter(out)
	if err := json.NewEncoder(b).Encode(h); err != nil {
		return err
	}
	for _, holds := range all {
		if err := writeHolds(b, holds); err != nil {
			return err
		}
	}
	return b.Flush()
}

func reportOne(out io.Writer, h Hold, err error) error {
	w := &worker{holds: []Hold{h}}
	if err != nil {
		w.trouble(err)
	}
	return report(out, heading{}, []int64{0}, []*worker{w})
}
