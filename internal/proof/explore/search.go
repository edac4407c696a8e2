package explore

import (
	"sync"
	"sync/atomic"
	"time"
)

// Result is the result of a search.
type Result struct {
	// Found is the property that broke, 0 if none.
	Found Property
	// Trace is the path to it, step by step.
	Trace []string
	// Complete: every state that can be reached was visited.
	Complete bool
	States   int
	// Depth of the last state visited: steps from the beginning.
	Depth int
	Took  time.Duration
	// Actions has how often each happened, on all paths that were searched.
	Actions Actions
}

// Limits of a search; zero: none.
type Limits struct {
	States  int // it is given up at the end of the level that reaches so many
	Workers int
	// Level is called after each step away from the beginning, with the states
	// known so far and those from which it goes on.
	Level func(depth, states, frontier int)
}

// chunk is some encoded states, each behind its ref.
type chunk struct {
	refs  []ref
	bytes []byte
}

const chunkStates = 1 << 12

// search is one breadth-first search.
type search struct {
	m        *Model
	machines *machines
	seen     seen
	stop     atomic.Bool

	mu       sync.Mutex
	found    Property
	foundAt  ref // the state from which one more step broke it
	frontier []chunk
}

// Search visits every state that m's world can reach, level by level, until one
// breaks what m checks.
func Search(m Model, lim Limits) Result {
	began := time.Now()
	s := &search{m: &m, machines: newMachines(&m)}
	workers := make([]*worker, max(1, lim.Workers))
	for i := range workers {
		w := newWalker(&m, s.machines)
		workers[i] = &worker{search: s, walker: w, future: newFuture(w)}
	}
	for _, st := range workers[0].initial() {
		workers[0].visit(&st, noRef)
	}
	workers[0].flush()
	r := Result{}
	for len(s.frontier) > 0 && s.found == 0 {
		if lim.States > 0 && s.seen.len() >= lim.States {
			break
		}
		level := s.frontier
		s.frontier = nil
		var next atomic.Int64
		var wg sync.WaitGroup
		for _, w := range workers {
			wg.Go(func() {
				for {
					i := int(next.Add(1)) - 1
					if i >= len(level) || s.stop.Load() {
						break
					}
					w.expand(level[i])
					level[i] = chunk{}
				}
				w.flush()
			})
		}
		wg.Wait()
		r.Depth++
		if lim.Level != nil {
			lim.Level(r.Depth, s.seen.len(), s.goOn())
		}
	}
	for _, w := range workers {
		r.Actions.add(w.actions)
	}
	r.Found, r.States = s.found, s.seen.len()
	r.Complete = s.found == 0 && len(s.frontier) == 0
	if s.found != 0 {
		r.Trace = newTrace(&m, s.machines).tell(s.seen.path(s.foundAt))
		r.Depth = len(s.seen.path(s.foundAt))
	}
	r.Took = time.Since(began)
	return r
}

// goOn returns how many states have not been expanded yet.
func (s *search) goOn() (states int) {
	for _, c := range s.frontier {
		states += len(c.refs)
	}
	return states
}

// worker expands states, one chunk after the other.
type worker struct {
	*walker
	future *future
	search *search
	at     state
	next   state
	step   []move
	code   []byte
	out    chunk
}

// expand takes every step from every state of c.
func (w *worker) expand(c chunk) {
	in := c.bytes
	for _, from := range c.refs {
		in = w.m.decode(in, &w.at)
		w.step = w.choices.moves(&w.at, w.step[:0])
		for _, mv := range w.step {
			w.next = w.at
			w.apply(&w.next, mv)
			if w.broken != 0 {
				w.report(from)
				return
			}
			if w.visit(&w.next, from) {
				if w.future.checkFuture(&w.next); w.broken != 0 {
					w.report(from)
					return
				}
			}
		}
	}
}

// visit adds a state to the next level if it is new, and reports whether it is.
func (w *worker) visit(st *state, from ref) bool {
	w.canonicalizer.canonical(st)
	w.code = w.m.encode(st, w.code[:0])
	r, isNew := w.search.seen.add(fingerprint(w.code), from)
	if !isNew {
		return false
	}
	w.out.refs = append(w.out.refs, r)
	w.out.bytes = append(w.out.bytes, w.code...)
	if len(w.out.refs) >= chunkStates {
		w.flush()
	}
	return true
}

func (w *worker) flush() {
	if len(w.out.refs) == 0 {
		return
	}
	w.search.mu.Lock()
	w.search.frontier = append(w.search.frontier, w.out)
	w.search.mu.Unlock()
	w.out = chunk{}
}

func (w *worker) report(from ref) {
	s := w.search
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found == 0 {
		s.found, s.foundAt = w.broken, from
	}
	s.stop.Store(true)
}
