package sim

import (
	"cmp"
	"context"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// operate has the worker act as an operator, at a machine that no fault hits: again and again
// it looks at the holder of a lock, thinks, and ends the lease that it saw.
func (k *worker) operate() {
	defer k.finish()
	if k.c.open() != nil {
		return
	}
	for k.sleep(k.c.ctx, prologue-k.w.timerNow()); !k.w.stop() && k.c.ctx.Err() == nil; {
		k.does("operates")
		k.sleep(k.c.ctx, k.upTo(2*k.w.script.longest()))
		k.intervene(k.rng.IntN(k.w.script.Locks))
	}
}

// intervene ends a lease of a lock by its owner, or breaks it by its token. Somebody else may
// have the lock by then.
func (k *worker) intervene(lock int) {
	ctx, stop := context.WithTimeout(k.c.ctx, k.w.script.longest())
	defer stop()
	shown, ok := k.shown(ctx, lock)
	if !ok || k.w.stop() {
		return
	}
	k.sleep(ctx, k.upTo(k.w.script.longest()/2))
	releases, now := k.rng.IntN(2) == 0, k.rng.IntN(2) == 0
	k.note(note{kind: named, lock: lock, text: shown.Holder.Owner, frees: releases || now})
	if k.w.switches.Careless {
		if shown, ok = k.shown(ctx, lock); !ok {
			return
		}
	}
	if releases {
		_ = k.c.c.Operator().ReleaseOwner(ctx, lockName(lock), shown.Holder.Owner) // it may be over, or the nodes down
		return
	}
	_ = k.c.c.Operator().Break(ctx, leasehold.BreakRequest{
		Name: lockName(lock), Token: shown.Token, Owner: shown.Holder.Owner, By: "operator", Now: now || k.w.switches.Hasty,
	})
}

// shown is the lease of a lock that an operator sees first, if there is one.
func (k *worker) shown(ctx context.Context, lock int) (h store.Holding, ok bool) {
	state, err := k.c.store.Inspect(ctx, lockName(lock))
	if err != nil || len(state.Leases()) == 0 {
		return h, false
	}
	return slices.MinFunc(state.Leases(), func(a, b store.Holding) int {
		return cmp.Compare(store.Rank(a.Holder.Owner), store.Rank(b.Holder.Owner))
	}), true
}
