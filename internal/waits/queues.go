package waits

import (
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/holds"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// Terms are what a goroutine wants of a lock. Goroutines with equal terms can share a
// place in the store's queue, and a lease one after the other.
type Terms struct {
	Name, Purpose string
	Life          leasefsm.Config
	Require       store.Class
	Unrenewed     bool // so the description of the holder says
	Kind          store.Kind
	Weight        int64  // of the kind's limit; 0 means 1
	own           uint64 // numbers the queues of one goroutine each; 0: shared by all with these terms
}

// several reports whether others can hold the lock at the same time.
func (t *Terms) several() bool { return !t.Kind.IsMutex() }

// Caller is what one goroutine wants for itself.
type Caller struct {
	// Bound has the context of the lease end with that of the wait.
	Bound bool
	// MinHold and RetryDelay are as in holds.Terms. RetryDelay is between attempts, too.
	MinHold    time.Duration
	RetryDelay func(try int) time.Duration
	Trace      string
	// OnWait is called with each reason why the lock is not granted yet, and OnCause only if
	// the cause is another one, with the position in the queue. Both may be nil.
	OnWait  func(reason error)
	OnCause func(reason error, position int)
}

// listens reports whether a function of the user's wants to know why the lock is waited for.
func (by *Caller) listens() bool { return by.OnWait != nil || by.OnCause != nil }

// tell tells the functions of the user's why the lock is waited for. It updates told, the last cause
// that OnCause was called with.
func (by *Caller) tell(reason error, told *cause) {
	if by.OnWait != nil {
		by.OnWait(reason)
	}
	if c := causeOf(reason); by.OnCause != nil && c != *told {
		*told = c
		by.OnCause(reason, c.position)
	}
}

// Queues are all the queues of a client. They have a mutex of their own, so that renewals and
// deadlines do not wait until queues with many waiters are served. It is locked before that of
// the holds, never after it.
type Queues struct {
	holds     *holds.Holds
	queued    bool // the store keeps a queue
	rejoins   bool // releasing and rejoining in one step pays
	describer describer

	mutex        sync.Mutex
	known        map[Terms]*queue
	numbered     uint64 // queues of one goroutine so far
	contentions  waitq.Contentions
	reservations reservations
}

// New returns the queues of a client whose leases are held by h.
func New(h *holds.Holds) *Queues {
	caps := h.Store.Caps()
	c := &Queues{holds: h, queued: !caps.NoQueue, rejoins: caps.Rejoins, known: make(map[Terms]*queue)}
	c.describer.init()
	c.mutex.Lock() // on a slow machine the timer may fire before it is stopped
	defer c.mutex.Unlock()
	c.reservations.init(c)
	return c
}

// Len returns how many queues there are, and how many goroutines wait in them.
func (c *Queues) Len() (queues, waiters int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, q := range c.known {
		waiters += q.m.Len()
	}
	return len(c.known), waiters
}

// lock locks the mutex and reads the clock.
func (c *Queues) lock() (now clock.Instant) {
	c.mutex.Lock()
	return c.holds.Clock.Now()
}

// queueLocked returns the queue for t.
func (c *Queues) queueLocked(t Terms) *queue {
	q := c.known[t]
	if q == nil {
		q = &queue{Terms: t, c: c}
		q.m = waitq.New[*waiter](t.Life.TTL, c.contentions.Of(t.Name))
		c.known[t] = q
	}
	return q
}

// ownQueueLocked returns a queue for t that nobody else joins.
func (c *Queues) ownQueueLocked(t Terms) *queue {
	if ownPlaces {
		c.numbered++
		t.own = c.numbered
	}
	return c.queueLocked(t)
}
