package torture

import (
	"cmp"
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

// note records an event of the current attempt, or of the one that e says.
func (h *hammer) note(e history.Event) {
	e.G, e.N = h.g, cmp.Or(e.N, h.n)
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
	want := h.claims(lock)
	want.waits = eager || !h.chance(0.3)
	acquire := (*leasehold.Lock).Try
	if want.waits {
		acquire = (*leasehold.Lock).Acquire
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	left = history.Now()
	h.note(history.Event{Op: history.Ask, At: left, Lock: lock, Waits: want.waits, Weight: want.weight})
	lease, err := acquire(want.lock.With(o), waiting)
	at := history.Now()
	if err != nil {
		e := history.Event{Op: history.Unknown, At: at, Err: err.Error()}
		if errors.Is(err, leasehold.ErrBusy) && !errors.Is(err, leasehold.ErrAmbiguous) && waiting.Err() == nil {
			e.Op = history.Failed
		}
		if errors.Is(err, leasehold.ErrKindMismatch) {
			h.fail(err) // nobody asked for another kind
		}
		h.note(e)
	} else {
		h.note(grant(lease, left, at))
		h.hold(ctx, want, lease)
	}
	if eager {
		return
	}
	select {
	case <-time.After(h.upTo(20 * time.Millisecond)):
	case <-ctx.Done():
	}
}

// grant is the event of a request that left after from and was granted at at.
func grant(l *leasehold.Lease, from, at clock.Instant) history.Event {
	return history.Event{Op: history.Granted, At: at, From: from, Token: l.Token(), Owner: l.Owner(), Slot: int64(l.Slot())}
}

// hold keeps the lease for a while and releases it. A writer may become a reader first,
// which counts as another attempt.
func (h *hammer) hold(ctx context.Context, of claim, lease *leasehold.Lease) {
	h.keep(ctx, of, lease)
	h.note(history.Event{Op: history.Release})
	attempt := h.n
	if of.writes && h.chance(0.3) {
		if reader := h.downgrade(ctx, of, lease); reader != nil {
			h.note(history.Event{Op: history.Released, N: attempt})
			h.keep(ctx, of, reader)
			h.note(history.Event{Op: history.Release})
			attempt, lease = h.n, reader
		}
	}
	err := lease.Release(context.Background())
	h.note(history.Event{Op: history.Released, N: attempt, Err: text(err)})
	h.late(of, lease, attempt)
}

// downgrade makes a writer a reader, and returns nil if that fails.
func (h *hammer) downgrade(ctx context.Context, of claim, writer *leasehold.Lease) *leasehold.Lease {
	h.n++
	from := history.Now()
	h.note(history.Event{Op: history.Ask, At: from, Lock: of.index, Weight: 1, Again: true})
	reader, err := writer.Downgrade(ctx)
	at := history.Now()
	if err != nil {
		h.note(history.Event{Op: history.Unknown, At: at, Err: err.Error()})
		return nil
	}
	h.note(grant(reader, from, at))
	return reader
}

// keep has the lease for a while, and checks and uses it.
func (h *hammer) keep(ctx context.Context, of claim, lease *leasehold.Lease) {
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
	// Some holders do not look, and rely on being told.
	relies := h.chance(0.1)
	if relies {
		length = h.upTo(5 * h.TTL / 2)
	}
	over := time.NewTimer(length)
	defer over.Stop()
	every := time.NewTicker(max(h.TTL/50, 10*time.Millisecond))
	defer every.Stop()
	look := every.C
	if relies {
		look = nil
	}
	defer h.listen(lease)()
	for held, number := true, 1; held && h.use(of, lease, number); number++ {
		if extend {
			extend = false
			h.extend(ctx, lease)
		}
		select {
		case <-look:
		case <-lease.Done(): // use finds out why
		case <-over.C:
			held = false
		case <-ctx.Done():
			held = false
		}
	}
}

// listen notes when the lease says by itself that it is lost, until stop is called.
func (h *hammer) listen(lease *leasehold.Lease) (stop func()) {
	over, gone := make(chan struct{}), make(chan struct{})
	attempt := h.n
	go func() {
		defer close(gone)
		select {
		case <-lease.Done():
			h.write(history.Event{Op: history.Told, G: h.g, N: attempt})
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-gone
	}
}

// use does what the lock protects, as a careful holder does: it checks its lease
// and writes. It returns false if the lease is lost.
func (h *hammer) use(of claim, lease *leasehold.Lease, number int) bool {
	at := history.Now()
	if err := lease.Err(); err != nil {
		h.note(history.Event{Op: history.Lost, Err: err.Error(), Denied: errors.Is(err, store.ErrNotHeld)})
		return false
	}
	deadline := lease.Deadline()
	// In this order a pause in between makes it earlier than it is, not later.
	until := history.Now().Add(time.Until(deadline))
	w := h.written(of, lease, number)
	if err := h.resource.Write(w); err != nil {
		h.fail(err)
	}
	h.note(history.Event{Op: history.Trust, At: at, Until: until, Done: history.Now(), Write: number})
	h.guard(lease, w)
	return true
}

// written is a write of the current attempt.
func (h *hammer) written(of claim, lease *leasehold.Lease, number int) history.Write {
	return history.Write{
		By:   history.ID{Proc: h.Proc, Life: h.Life, G: h.g, N: h.n},
		Lock: of.index, Slot: int64(lease.Slot()), Number: number, Token: lease.Token(),
	}
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
