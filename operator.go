package leasehold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/waits"
	"github.com/leasehold-dev/leasehold/store"
)

// Operator is for people who look after the locks of a store, and programs that act for them.
// It shows locks by their names, whatever their kind, and takes them from holders that hang. It
// acquires none. It is safe for concurrent use.
//
// The packages of stores have what an operator does to their servers: see
// redisstore/redisadmin.
type Operator struct{ c *Client }

// Operator returns the operator of the locks in the store of c. It sends nothing.
func (c *Client) Operator() *Operator { return &Operator{c} }

// Inspect returns the state of one lock, with its holders and waiters. It is Store.Inspect.
func (o *Operator) Inspect(ctx context.Context, name string) (store.State, error) {
	mustHave(ctx)
	return o.c.store.Inspect(ctx, name)
}

// List returns the locks that are held and whose names begin with prefix. It is Store.List.
func (o *Operator) List(ctx context.Context, prefix string) ([]store.State, error) {
	mustHave(ctx)
	return o.c.store.List(ctx, prefix)
}

// WaitFree blocks until nobody holds the lock. It takes nothing and has no place in
// the queue, so the lock may be held again when it returns: to do something that
// excludes others, acquire the lock. It waits for holders of every kind.
//
// It asks the store after each RetryDelay, and when the holder's lease is about to
// end. It calls onWait, unless that is nil, with each reason to wait on; onWait runs on the
// goroutine that waits, and must not block. If ctx ends first, the error matches ctx.Err(), and
// ErrBusy if the lock was held. While nodes cannot be reached, it goes on for DefaultTTL; any
// other error of the store is returned at once.
//
// A lease that is undecided, because some of several servers do not answer
// (store.State.Undecided), is waited for like any other. BusyError.Undecided then reports
// that. The wait ends when the servers decide that nobody holds the lock, or when the
// lease has expired on so many of those that answer that the others do not matter.
func (o *Operator) WaitFree(ctx context.Context, name string, onWait func(reason error)) error {
	mustHave(ctx)
	if err := store.CheckName(name); err != nil {
		return err
	}
	var last error
	var trouble clock.Instant // since when the store gave no answer at all
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return waits.GaveUp(ctx, last)
		}
		state, err := o.c.store.Inspect(ctx, name)
		if err == nil && state.Free() {
			return nil
		}
		if err == nil {
			err = state.InUse()
		} else if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return waits.GaveUp(ctx, waits.Both(last, err))
		}
		busy, retry := waits.CanWait(err)
		switch now := o.c.holds.Clock.Now(); {
		case !retry:
			return err
		case busy != nil:
			trouble = 0
		case trouble == 0:
			trouble = now
		case now.Sub(trouble) > DefaultTTL:
			return err
		}
		last = err
		if onWait != nil {
			onWait(err)
		}
		clock.Sleep(ctx, waits.UntilFree(o.c.holds.RetryDelay(try), busy))
	}
}

// BreakRequest says which lease to break, and why: see Operator.Break.
type BreakRequest struct {
	// Name is the name of the lock.
	Name string
	// Token is the fencing token of the lease, as the operator was shown it.
	Token Token
	// Owner says which of several leases is meant if they have the same token, as
	// those of readers do. Default: the only one that has it.
	Owner string
	// By says who breaks the lease, and Reason why. They are shown to people for a day
	// (store.State.Broken). At most store.MaxNote bytes each.
	By, Reason string
	// Now frees the lock without waiting for its holder. The holder may not be notified
	// before its next renewal, so two processes may work at once: only a resource that checks
	// fencing tokens is safe then.
	Now bool
	// OnWait is called when the lease is broken and not over yet, and before each pause,
	// with a *BusyError that says for how long it can last. It runs on the goroutine
	// that breaks, and must not block. Default: none.
	OnWait func(reason error)
}

// Break takes a lock away from a holder that hangs, and returns when the holder's lease
// is over. The token tells the lease that the operator saw from that of the next
// holder, which is left alone.
//
// From the moment that the store has the request, the lease cannot be renewed. The
// holder learns of that by a renewal that is refused: its context ends, with a
// *LostError whose Cause is LostDenied. A store with Caps.Notifies, as those
// of Redis, etcd, ZooKeeper, a file and memory are, has it renewed at once; otherwise, or
// if the message is lost, the next renewal is LockOptions.RenewEvery (a third of the TTL)
// after the last one. While some of several servers are down, the answers to a renewal may
// not show the break. Then the holder is notified Notice before the end of its validity, as
// when it cannot reach the store. The lock passes to the next owner when the holder has
// released it, as Do does, or when its validity is over. So the holder knows of the loss
// before anybody else can hold the lock, as with every loss. A holder whose process is
// dead or stopped keeps the lock until then, for one TTL at most. Now skips all of this.
//
// Break blocks until the lease is over. It is safe for concurrent use, and breaking a
// lease twice is like breaking it once. It returns nil if the lease is over, also if it was
// broken before. The error matches ErrNotHeld if nobody holds the lock and no lease with the
// token was the last one to be broken: the name or the token may be mistyped, or the lease
// has ended by itself. It matches ErrBusy if the lock is held with another token. If
// ctx ends first it matches ctx.Err(), and also ErrBusy if the lease was broken and is
// not over yet: it then ends in the same way, and Break does not wait for it.
// ErrUnsupported means that the store cannot break this lease, and ErrInvalid that the
// request is wrong; other errors are the store's, and trying again is safe.
//
// While some of several servers do not answer, it may be undecided whether a lease is held
// (store.State.Undecided). Break breaks such a lease like any other. If the undecided leases
// have other tokens, the error matches ErrBusy, and if too few servers answer to break a
// lease, it matches ErrQuorum. Both name the servers that do not answer.
func (o *Operator) Break(ctx context.Context, r BreakRequest) error {
	mustHave(ctx)
	req := store.BreakRequest{Name: r.Name, Owner: cmp.Or(r.Owner, "-"), Token: r.Token, Now: r.Now, By: r.By, Reason: r.Reason, At: nowForPeople()}
	if err := req.Check(); err != nil {
		return err
	}
	if caps := o.c.store.Caps(); caps.NoBreaks {
		return fmt.Errorf("%w: %s cannot break a lease: it ends when its holder is gone, after its TTL", ErrUnsupported, caps.Engine)
	}
	h, last, err := leaseToBreak(ctx, o.c.store, r)
	switch {
	case err != nil:
		return err
	case h == nil && last != nil && last.Token == r.Token && (r.Owner == "" || last.Owner == r.Owner):
		return nil
	case h == nil:
		return fmt.Errorf("nobody holds lock %q, with token %v or another, so there is nothing to break (is the name right?): %w", r.Name, r.Token, ErrNotHeld)
	}
	req.Owner = h.Holder.Owner
	broken := false
	for try := 1; ; try++ {
		left, err := o.c.store.BreakLease(ctx, req)
		switch {
		case err == nil && left == 0:
			return nil
		case errors.Is(err, store.ErrNotHeld) && broken:
			return nil
		case errors.Is(err, store.ErrNotHeld):
			// It has ended since we looked, unless it is undecided again: a server answered in
			// between. Another reader may have the same token by now.
			same := r
			same.Owner = req.Owner
			if h, _, err = leaseToBreak(ctx, o.c.store, same); err != nil || h == nil {
				return err
			}
			if clock.Sleep(ctx, o.c.holds.RetryDelay(try)); ctx.Err() != nil {
				return waits.GaveUp(ctx, nil)
			}
			continue
		case err != nil:
			return err
		}
		broken = true
		busy := &BusyError{Name: r.Name, Holder: h.Holder, ExpiresIn: left}
		if r.OnWait != nil {
			r.OnWait(busy)
		}
		if clock.Sleep(ctx, waits.UntilFree(o.c.holds.RetryDelay(try), busy)); ctx.Err() != nil {
			return waits.GaveUp(ctx, busy)
		}
	}
}

// leaseToBreak returns the lease that r is about, which may be undecided, or nil if nobody
// holds the lock, and the lease of that lock that was broken last, if any. If no lease is shown
// with its token, that is one that a node has, since which token is shown depends on the nodes
// that answer.
func leaseToBreak(ctx context.Context, st *store.Store, r BreakRequest) (found *store.Holding, last *store.Broken, err error) {
	state, err := st.Inspect(ctx, r.Name)
	if err != nil {
		return nil, nil, err
	}
	leases := slices.DeleteFunc(state.Leases(), func(h store.Holding) bool { return r.Owner != "" && h.Holder.Owner != r.Owner })
	isShown := slices.ContainsFunc(leases, func(h store.Holding) bool { return h.Token == r.Token })
	for _, h := range leases {
		switch {
		case h.Token != r.Token && (isShown || !h.HasToken(r.Token)):
		case found != nil && found.Holder.Owner == h.Holder.Owner: // another permit of it
		case found != nil:
			return nil, nil, invalid("lock %q has several holders with token %v: name the owner of the lease to break", r.Name, r.Token)
		default:
			found = &h
		}
	}
	switch {
	case found != nil && !found.Holder.Foreign, found == nil && state.Free():
		return found, state.Broken, nil
	case found != nil || state.Leases()[0].Holder.Foreign:
		return nil, nil, store.UnbreakableError(r.Name)
	}
	return nil, nil, otherToken(r, state)
}

// otherToken is the error if the lock is held, or may be, and not with the token that was
// shown.
func otherToken(r BreakRequest, state store.State) error {
	busy, token := state.InUse(), state.Leases()[0].Token
	if r.Owner != "" {
		return fmt.Errorf("owner %s has no lease with token %v: %w, with token %v", r.Owner, r.Token, busy, token)
	}
	return fmt.Errorf("no lease has token %v: %w, with token %v", r.Token, busy, token)
}

// nowForPeople is the time of day as it is shown to others.
func nowForPeople() time.Time { return time.Now() }

// ReleaseOwner ends the lease that owner has of the lock called name, in whatever
// process it was acquired: Lease.Owner there says what owner is. It is for leases
// that outlive the process that acquired them, with LockOptions.NoRenew. A holder
// that still renews the lease (Holder.Unrenewed is false) is notified of the loss at its next
// renewal only, when others may have the lock: Break tells it first. Requests of owner that are
// still on their way are refused until the lease would have expired, so if owner waits for the
// lock again, it is not granted it before that.
//
// ReleaseOwner blocks for two answers of the store. The error matches ErrLost if
// owner no longer has a lease, as in a second call. While some of several servers do not
// answer, it may be undecided whether the lease is held (store.State.Undecided);
// ReleaseOwner ends it all the same. After any other error the lease
// may or may not remain, and calling again is safe. Safe for concurrent use.
func (o *Operator) ReleaseOwner(ctx context.Context, name, owner string) error {
	mustHave(ctx)
	if err := store.CheckOwner(owner); err != nil {
		return err
	}
	state, err := o.c.store.Inspect(ctx, name)
	if err != nil {
		return err
	}
	gone := &LostError{Name: name, Cause: LostDenied, Reason: fmt.Sprintf("owner %s no longer had it when it was released", owner)}
	if b := state.Broken; b != nil && b.Owner == owner {
		gone.Reason, gone.Broken = b.String(), b
	}
	leases := state.Leases()
	i := slices.IndexFunc(leases, func(h store.Holding) bool { return h.Holder.Owner == owner })
	if i < 0 {
		return gone
	}
	err = o.c.store.Release(ctx, store.ReleaseRequest{Lease: leaseOf(state, leases[i], o.c.store.Caps()), Renewed: true})
	if errors.Is(err, store.ErrNotHeld) {
		return gone
	}
	return err
}

// Resize changes the number of permits of a semaphore that is in use, from one number to
// another. It blocks for the store's answer.
//
// Leases stay as they are. If they no longer fit, nobody is granted a permit until they
// do. Goroutines and processes that wait end with ErrKindMismatch, since they asked for
// the earlier number, as do all that ask for it from now on. A semaphore that nobody
// uses has no number of permits: the first that asks for it says how many. Resize then
// does nothing.
//
// Over several Redis servers a semaphore keeps its number: the error matches ErrUnsupported.
// Use a semaphore with another name for another number.
//
// The error matches ErrKindMismatch, and names both numbers, if another number than from
// is in use, ErrInvalid if a number is less than 1, and ErrUnsupported if the store cannot
// do it. After any other error the number may have changed, and calling again is safe.
func (o *Operator) Resize(ctx context.Context, name string, from, to int) error {
	mustHave(ctx)
	if from < 1 || to < 1 {
		return invalid("lock %q: a semaphore needs at least one permit", name)
	}
	return o.c.store.Resize(ctx, name, store.Semaphore(int64(from)), store.Semaphore(int64(to)))
}

// leaseOf returns the lease that h is, as another process has to name it.
func leaseOf(state store.State, h store.Holding, caps store.Caps) store.Lease {
	ttl := max(h.ExpiresIn, time.Second, caps.MinTTL) // for how long late requests of the holder are refused
	if caps.MaxTTL > 0 {
		ttl = min(ttl, caps.MaxTTL)
	}
	kind := h.Kind
	if kind.IsMutex() && len(state.Holders) > 0 { // of a semaphore that was resized to one permit
		kind = store.Semaphore(max(h.Weight, 2))
	}
	l := store.Lease{Name: state.Name, Owner: h.Holder.Owner, Kind: kind, Weight: h.Weight, TTL: ttl}
	described := h.Holder
	described.Owner = ""
	if described != (Holder{}) {
		l.Meta = described.Encode()
	}
	return l
}
