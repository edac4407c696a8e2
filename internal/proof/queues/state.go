package queues

import (
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/waitq"
)

const (
	now = clock.Instant(1000 * time.Hour)
	ttl = time.Hour
)

// owner names a request to the store. Zero is nobody.
type owner uint16

// state is one moment of the world.
type state struct {
	lock      modelnode.Lock[owner]
	grants    []grant // that no client knows of yet
	releases  []owner // under way, of what nobody wants
	processes []*process

	token          fence.Token
	ends, refusals int // that are left
}

// grant is a grant of the store's.
type grant struct {
	owner owner
	token fence.Token
}

// process is a client: the queue of its goroutines, and what carries it out.
type process struct {
	queue        waitq.Queue[*goroutine]
	contention   *waitq.Contention
	goroutines   []*goroutine
	starting     int    // goroutines that are about to ask for the queue
	place        *place // in the store's queue
	reserved     owner  // of such a place that nobody waits at yet,
	reservedRank uint64 // and its rank
	leases       []*lease
	rank         uint64 // that the next place must have, if not 0
}

type phase uint8

const (
	away phase = iota
	trying
	queued
	holding
)

// goroutine wants the lock some times more.
type goroutine struct {
	phase  phase
	rounds int
	ended  bool // its context
	waiter *waitq.Waiter[*goroutine]
	lease  *lease
}

type place struct {
	owner     owner
	self      *goroutine // that waits there for itself; nil: a goroutine waits for the queue
	cancelled bool
	over      bool // the wait has ended
}

type leasePhase uint8

const (
	held leasePhase = iota
	releasing
	released
	rejoined
)

// lease is one that a process has.
type lease struct {
	owner owner
	phase leasePhase
	next  owner // of the place that was taken with its release
	rank  uint64
}

// expected is the contention of a client that has wanted a lock again and again, soon after it
// released it.
func expected() *waitq.Contention {
	c := new(waitq.Contention)
	q := waitq.New[*goroutine](ttl, c)
	w := &waitq.Waiter[*goroutine]{}
	for _, e := range []waitq.Event[*goroutine]{{Kind: waitq.Arrive}, {Kind: waitq.TryRefused, Waiter: w}, {Kind: waitq.Enter, Rank: 1}, {Kind: waitq.NewReason, Pushed: true}, {Kind: waitq.Granted}} {
		q.Step(e, now, nil)
	}
	for range 4 {
		c.Released(now)
		q.Step(waitq.Event[*goroutine]{Kind: waitq.Arrive}, now, nil)
	}
	return c
}

func newState(m *Model) *state {
	s := &state{ends: m.Ends, refusals: m.Refusals}
	for _, n := range m.Goroutines {
		p := &process{contention: new(waitq.Contention)}
		if m.Rejoins {
			p.contention = expected()
		}
		for range n {
			p.goroutines = append(p.goroutines, &goroutine{rounds: m.Rounds})
		}
		s.processes = append(s.processes, p)
	}
	return s
}

// newRank returns a rank behind all that are known.
func (s *state) newRank() (rank uint64) {
	for _, p := range s.lock.Queue {
		rank = max(rank, p.Ticket)
	}
	for _, p := range s.processes {
		rank = max(rank, p.rank, p.queue.Rank(), p.reservedRank)
		for _, l := range p.leases {
			rank = max(rank, l.rank)
		}
	}
	return rank + 1
}
