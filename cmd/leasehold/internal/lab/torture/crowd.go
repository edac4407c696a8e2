package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/history"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// What a crowd does is not recorded. It must not keep the holders of other locks from what
// they were promised, and these are in the same process.

// rely holds the first lock without renewal, and without looking, until it is notified that
// the lease is over. It is recorded: the others wait for that lock. Just before, a crowd that
// waits for another lock gives up, all at once.
func (h *hammer) rely(ctx context.Context) {
	wanted := h.client.Mutex(h.crowded("wanted")).With(leasehold.LockOptions{TTL: h.TTL})
	taken, err := wanted.Acquire(ctx)
	if err != nil {
		clock.Sleep(ctx, h.TTL/10)
		return
	}
	defer taken.Release(context.WithoutCancel(ctx))
	h.n++
	from := history.Now()
	h.note(history.Event{Op: history.Ask, At: from, Waits: true, Weight: 1})
	patience, cancel := context.WithTimeout(ctx, 3*h.TTL)
	defer cancel()
	lease, err := h.client.Mutex(h.Locks[0]).With(leasehold.LockOptions{TTL: h.TTL, NoRenew: true, Purpose: "lab torture"}).Acquire(patience)
	at := history.Now()
	if err != nil {
		h.note(history.Event{Op: history.Unknown, At: at, Err: err.Error()})
		return
	}
	h.note(grant(lease, from, at))
	stop := h.listen(lease)
	h.use(claim{}, lease, 1)
	waiting, enough := context.WithDeadline(ctx, lease.Deadline().Add(-h.TTL/8))
	defer enough()
	var all sync.WaitGroup
	for range h.Crowd {
		all.Go(func() {
			if l, err := wanted.Acquire(waiting); err == nil { // the lease was lost
				l.Release(context.WithoutCancel(ctx))
			}
		})
	}
	select {
	case <-lease.Done():
		h.note(history.Event{Op: history.Lost, Err: text(lease.Err()), Denied: errors.Is(lease.Err(), store.ErrNotHeld)})
	case <-ctx.Done():
	}
	stop()
	h.note(history.Event{Op: history.Release})
	h.note(history.Event{Op: history.Released, Err: text(lease.Release(context.Background()))})
	all.Wait()
}

// read has a crowd hold one lock together, as readers.
func (w *worker) read(ctx context.Context, client *leasehold.Client) {
	lock := client.RW(w.crowded("read")).Read().With(leasehold.LockOptions{TTL: w.TTL})
	for ctx.Err() == nil {
		var all sync.WaitGroup
		for range w.Crowd / 20 {
			all.Go(func() {
				if l, err := lock.Acquire(ctx); err == nil {
					clock.Sleep(ctx, 2*w.TTL)
					l.Release(context.WithoutCancel(ctx))
				}
			})
		}
		all.Wait()
	}
}

// operate breaks leases now and then, by what is shown of them, or releases them by their owner
// while they are renewed.
func (w *worker) operate(ctx context.Context, client *leasehold.Client, st *store.Store) {
	for clock.Sleep(ctx, w.TTL+time.Duration(rand.Int64N(int64(w.TTL)))) {
		name := w.Locks[rand.IntN(len(w.Locks))]
		is, err := st.Inspect(ctx, name)
		if err != nil || !is.Held {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, w.TTL)
		if of := is.Leases(); len(of) > 0 && !of[0].Holder.Unrenewed && rand.IntN(2) == 0 {
			w.write(history.Event{Op: history.Freed, Owner: of[0].Holder.Owner})
			_ = client.Operator().ReleaseOwner(limited, name, of[0].Holder.Owner) // it may be over
			cancel()
			continue
		}
		_ = client.Operator().Break(limited, leasehold.BreakRequest{Name: name, Token: is.Token, Reason: "lab torture"}) // it may be over
		cancel()
	}
}

// crowded names a lock of the crowd.
func (w *worker) crowded(what string) string { return fmt.Sprintf("%s/crowd/%s", w.Locks[0], what) }
