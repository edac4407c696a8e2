package observe

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

const (
	// every is the least time between two looks while somebody watches, and calm while
	// somebody has asked within linger. A look that takes long makes the pause longer: looking
	// takes at most a part of the time.
	every  = time.Second
	calm   = 5 * time.Second
	part   = 20
	linger = 2 * time.Minute
	// hurried is the least time between two looks if the store says that a lease was broken.
	hurried = 200 * time.Millisecond
	// patience is how long View waits for a look.
	patience = 2 * time.Second
	// kept is how many events a View has at most.
	kept = 500
	// wantedFor is how long Want has effect.
	wantedFor = 10 * time.Second
	// mostWanted bounds the names that Want keeps.
	mostWanted = 4096
)

// Observer looks at a store. It is safe for concurrent use. It sends nothing while nobody
// calls it.
type Observer struct {
	ctx    context.Context // of all looks
	cancel context.CancelFunc
	stop   func() // the store's messages about broken leases
	hurry  chan struct{}
	// epoch tells the events of this Observer from those of others, and streams has room for
	// each client that is told of them.
	epoch   string
	streams Streams

	mu       sync.Mutex
	view     *View
	next     chan struct{} // closed when view is replaced
	running  chan struct{} // closed when run returns; nil if it does not run
	watchers int
	asked    time.Time // when somebody asked last
	wanted   map[string]time.Time
	single   map[string]*single // by the name of the lock
	room     chan struct{}      // for calls of Inspect at a time

	// Only run uses these.
	looker  looker
	changes changes
}

// New returns an Observer of st.
func New(st *store.Store) *Observer {
	o := &Observer{hurry: make(chan struct{}, 1), view: &View{}, next: make(chan struct{}), wanted: map[string]time.Time{}, single: map[string]*single{}, room: make(chan struct{}, atOnce), looker: looker{st: st}}
	o.epoch, o.streams = strconv.FormatInt(time.Now().UnixNano(), 36), NewStreams()
	o.ctx, o.cancel = context.WithCancel(context.Background())
	o.stop = func() {}
	if st.Caps().Notifies {
		o.stop = st.NotifyBroken(func(string) { o.hurryUp() })
	}
	return o
}

// hurryUp has run look again soon, if it runs.
func (o *Observer) hurryUp() {
	select {
	case o.hurry <- struct{}{}:
	default:
	}
}

// Close ends the looks. It waits for the one under way, whose context ends, for a bounded time.
func (o *Observer) Close() {
	o.stop()
	o.cancel()
	o.mu.Lock()
	running := o.running
	o.mu.Unlock()
	if running == nil {
		return
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case <-running:
	case <-wait.C: // the store does not heed the context
	}
}

// View returns what is known. If that is older than the time between two looks, it has the
// store looked at, and waits for that as long as ctx and some patience last.
func (o *Observer) View(ctx context.Context) *View {
	o.mu.Lock()
	view, next := o.view, o.next
	fresh := view.ID > 0 && time.Since(view.At) < every
	o.askLocked()
	o.mu.Unlock()
	if fresh {
		return view
	}
	o.hurryUp()
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case <-next:
	case <-wait.C:
	case <-ctx.Done():
	}
	return o.Latest()
}

// Latest returns what is known, without a look at the store.
func (o *Observer) Latest() *View {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.view
}

// Next returns the first View after the one with that ID. It blocks until there is one, and
// fails only if ctx ends or the Observer is closed. While a call blocks, the store is looked at
// again and again.
func (o *Observer) Next(ctx context.Context, after uint64) (*View, error) {
	o.mu.Lock()
	o.watchers++
	o.askLocked()
	defer func() {
		o.mu.Lock()
		o.watchers--
		o.asked = time.Now()
		o.mu.Unlock()
	}()
	for {
		view, next := o.view, o.next
		o.mu.Unlock()
		if view.ID > after {
			return view, nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-o.ctx.Done():
			return nil, store.ErrClosed
		}
		o.mu.Lock()
	}
}

// Inspect returns the state of one lock as it was less than a second ago. However many ask, the
// store is asked once a second for each lock, and about a few locks at a time.
func (o *Observer) Inspect(ctx context.Context, name string) (store.State, error) {
	o.mu.Lock()
	one := o.single[name]
	if one == nil || one.ended() && time.Since(one.at) >= every {
		one = &single{at: time.Now(), done: make(chan struct{})}
		for other, s := range o.single {
			if s.ended() && time.Since(s.at) >= every {
				delete(o.single, other)
			}
		}
		if len(o.single) >= mostSingle {
			o.mu.Unlock()
			return store.State{}, errTooMany
		}
		o.single[name] = one
		go o.inspect(name, one)
	}
	o.mu.Unlock()
	select {
	case <-one.done:
		return one.state, one.err
	case <-ctx.Done():
		return store.State{}, ctx.Err()
	}
}

// mostSingle bounds the locks that Inspect asks the store for in a second.
const mostSingle = 256

var errTooMany = errors.New("others look at too many locks at the same time: try again")

// single is one call of Inspect at the store.
type single struct {
	at    time.Time
	done  chan struct{} // closed when state and err are set
	state store.State
	err   error
}

func (s *single) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (o *Observer) inspect(name string, one *single) {
	defer close(one.done)
	ctx, cancel := context.WithTimeout(o.ctx, lookTimeout)
	defer cancel()
	select {
	case o.room <- struct{}{}:
		defer func() { <-o.room }()
	case <-ctx.Done():
		one.err = ctx.Err()
		return
	}
	one.state, one.err = o.looker.st.Inspect(ctx, name)
}

// Want has the next looks inspect these locks before others: somebody looks at them.
func (o *Observer) Want(names ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	until := time.Now().Add(wantedFor)
	for _, name := range names {
		if len(o.wanted) < mostWanted {
			o.wanted[name] = until
		}
	}
}

// askLocked notes that somebody asks, and begins to look.
func (o *Observer) askLocked() {
	o.asked = time.Now()
	if o.running == nil && o.ctx.Err() == nil {
		o.running = make(chan struct{})
		go o.run(o.running)
	}
}

// run looks until nobody asks any more.
func (o *Observer) run(done chan struct{}) {
	defer close(done)
	for {
		began := time.Now()
		o.look()
		took := time.Since(began)
		pause := time.NewTimer(max(o.pause(), part*took) - took)
		least := time.After(hurried)
		select {
		case <-pause.C:
		case <-o.ctx.Done():
		case <-o.hurry:
			select {
			case <-least:
			case <-o.ctx.Done():
			}
		}
		pause.Stop()
		o.mu.Lock()
		if o.ctx.Err() != nil || o.watchers == 0 && time.Since(o.asked) > linger {
			o.running = nil
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
	}
}

func (o *Observer) pause() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watchers > 0 {
		return every
	}
	return calm
}

// look looks at the store once, and shows what it found.
func (o *Observer) look() {
	ctx, cancel := context.WithTimeout(o.ctx, lookTimeout)
	defer cancel()
	v := *o.Latest() // the next one
	v.ID++
	v.At = time.Now()
	states, err := o.looker.list(ctx)
	v.Err = err
	v.Counts.Looks++
	if err != nil && !errors.Is(err, store.ErrIncomplete) {
		v.Counts.FailedLooks++
		if few := (*store.QuorumError)(nil); errors.As(err, &few) && len(few.Nodes) > 1 {
			v.Nodes = few.Nodes
		}
		o.show(&v)
		return
	}
	o.looker.inspect(ctx, o.changes.ending(states), o.wantedNow(), states)
	l := look{began: v.At, ended: time.Now(), states: states, whole: err == nil, broken: map[string]*store.Broken{}}
	for name, i := range o.looker.inspected {
		if i.broken != nil {
			l.broken[name] = i.broken
		}
	}
	events := o.changes.step(l)
	for _, e := range events {
		v.Counts.add(e)
	}
	all := append(v.Events[:len(v.Events):len(v.Events)], events...)
	v.Events = all[max(0, len(all)-kept):]
	v.SeenAt, v.Locks, v.Nodes = v.At, o.locks(states), worst(states)
	if len(v.Nodes) == 0 {
		v.Nodes = o.looker.nodes(ctx)
	}
	o.looker.forget(states)
	v.Took = time.Since(v.At)
	o.show(&v)
}

// locks joins what List and Inspect say.
func (o *Observer) locks(states []store.State) []Lock {
	locks := make([]Lock, len(states))
	for i, s := range states {
		held := len(s.Holdings())
		l := &locks[i]
		l.State = s
		if i, ok := o.looker.inspected[s.Name]; ok {
			l.InspectedAt, l.Queue, l.Broken = i.at, i.queue, i.broken
		}
		for j, h := range leasesOf(s) {
			l.Leases = append(l.Leases, Lease{Holding: h, MayHold: j >= held, TTL: o.changes.leases[leaseKey{s.Name, h.Holder.Owner}].longest})
		}
	}
	return locks
}

func (o *Observer) show(v *View) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.view = v
	close(o.next)
	o.next = make(chan struct{})
}

// wantedNow returns the names that Want has named lately.
func (o *Observer) wantedNow() map[string]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, names := time.Now(), map[string]bool{}
	for name, until := range o.wanted {
		if now.After(until) {
			delete(o.wanted, name)
			continue
		}
		names[name] = true
	}
	return names
}
