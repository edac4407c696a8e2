package torture

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/history"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// hammer is one goroutine that acquires and releases locks. Its actions are
// drawn from its rng; their times and results are not.
type hammer struct {
	*worker
	g      int
	n      int // attempts so far
	client *leasehold.Client
	rng    *rand.Rand
	// Now and then it wants one lock so many times in a row, at once: it is then
	// expected back.
	spell, lock int
}

func (h *hammer) chance(p float64) bool { return h.rng.Float64() < p }

// upTo draws a duration below d.
func (h *hammer) upTo(d time.Duration) time.Duration { return time.Duration(h.rng.Int64N(int64(d))) }

// note records an event of the current attempt.
func (h *hammer) note(e history.Event) {
	e.G, e.N = h.g, h.n
	h.write(e)
}

// round is one attempt, and the hold that may follow.
func (h *hammer) round(ctx context.Context) {
	h.n++
	h.spell--
	if h.spell <= 0 && h.chance(0.1) {
		h.spell, h.lock = 10+h.rng.IntN(40), h.rng.IntN(len(h.Locks))
	}
	lock, eager := h.lock, h.spell > 0
	if !eager {
		lock = h.rng.IntN(len(h.Locks))
	}
	var left clock.Instant // a moment before the last request left
	o := leasehold.LockOptions{
		TTL: h.TTL, NoRenew: !eager && h.chance(0.15), Purpose: "lab torture",
		RetryDelay: leasehold.Backoff(5*time.Millisecond, 50*time.Millisecond),
		OnWait:     func(error) { left = history.Now() },
	}
	patience := h.upTo(3 * h.TTL)
	if h.chance(0.15) { // somebody gives up in the middle
		patience = h.upTo(50 * time.Millisecond)
	}
	acquire, waits := (*leasehold.Lock).Acquire, true
	if !eager && h.chance(0.3) {
		acquire, waits = (*leasehold.Lock).Try, false
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	left = history.Now()
	h.note(history.Event{Op: history.Ask, At: left, Lock: lock, Waits: waits})
	lease, err := acquire(h.client.Mutex(h.Locks[lock]).With(o), waiting)
	at := history.Now()
	if err != nil {
		e := history.Event{Op: history.Unknown, At: at, Err: err.Error()}
		if errors.Is(err, leasehold.ErrBusy) && !errors.Is(err, leasehold.ErrAmbiguous) && waiting.Err() == nil {
			e.Op = history.Failed
		}
		h.note(e)
	} else {
		h.note(history.Event{Op: history.Granted, At: at, From: left, Token: lease.Token(), Owner: lease.Owner()})
		h.hold(ctx, lock, lease)
	}
	if eager {
		return
	}
	select {
	case <-time.After(h.upTo(20 * time.Millisecond)):
	case <-ctx.Done():
	}
}

// hold keeps the lease for a while, checks and uses it, and releases it.
func (h *hammer) hold(ctx context.Context, lock int, lease *leasehold.Lease) {
	length := h.upTo(20 * time.Millisecond)
	if h.spell > 0 {
		length /= 10
	}
	switch p := h.rng.Float64(); {
	case p < 0.06:
		length = h.upTo(5 * h.TTL / 2) // needs renewals, or ends too early
	case p < 0.3:
		length = h.upTo(h.TTL / 3)
	}
	extend := h.chance(0.2)
	over := time.NewTimer(length)
	defer over.Stop()
	every := time.NewTicker(max(h.TTL/50, 10*time.Millisecond))
	defer every.Stop()
	for held, number := true, 1; held && h.use(lock, lease, number); number++ {
		if extend {
			extend = false
			h.extend(ctx, lease)
		}
		select {
		case <-every.C:
		case <-lease.Done(): // use finds out why
		case <-over.C:
			held = false
		case <-ctx.Done():
			held = false
		}
	}
	h.note(history.Event{Op: history.Release})
	err := lease.Release(context.Background())
	h.note(history.Event{Op: history.Released, Err: text(err)})
}

// use does what the lock protects, as a careful holder does: it checks its lease
// and writes. It returns false if the lease is lost.
func (h *hammer) use(lock int, lease *leasehold.Lease, number int) bool {
	at := history.Now()
	if err := lease.Err(); err != nil {
		h.note(history.Event{Op: history.Lost, Err: err.Error(), Denied: errors.Is(err, store.ErrNotHeld)})
		return false
	}
	deadline := lease.Deadline()
	// In this order a pause in between makes it earlier than it is, not later.
	until := history.Now().Add(time.Until(deadline))
	if err := h.resource.Write(history.Write{
		By:   history.ID{Proc: h.Proc, Life: h.Life, G: h.g, N: h.n},
		Lock: lock, Number: number, Token: lease.Token(),
	}); err != nil {
		h.fail(err)
	}
	h.note(history.Event{Op: history.Trust, At: at, Until: until, Done: history.Now(), Write: number})
	return true
}

func (h *hammer) extend(ctx context.Context, lease *leasehold.Lease) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Millisecond+h.upTo(h.TTL/3))
	defer cancel()
	h.note(history.Event{Op: history.Extended, Err: text(lease.Extend(ctx))})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
