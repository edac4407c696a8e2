package redisdoor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// locks carries out plans on a store. It is safe for concurrent use.
type locks struct {
	store *store.Store
	held  grants
	now   func() time.Time
}

// outcome is what carrying out a plan found.
type outcome uint8

const (
	isDone outcome = iota
	isFree
	isOther
)

// do carries out a plan, and returns the reply. A lease that it takes has the description meta. It
// blocks for the answers of the store.
//
// Plans are passed as pointers here, and what is rare is in functions of its own, so that the
// goroutine of an idle connection has a small stack.
func (l *locks) do(ctx context.Context, p *plan, meta string) reply {
	if p.until != 0 {
		if p.ttl = time.UnixMilli(p.until).Sub(l.now()); p.ttl < time.Millisecond {
			return failed("ERR the time at which the lock is to end is over, by the clock of this server")
		}
	}
	var r reply
	var err error
	switch {
	case p.verb == acquire:
		r, err = l.acquire(ctx, p, meta)
	case p.verb.locks():
		r, err = l.change(ctx, p, meta)
	default:
		r, err = l.look(ctx, p)
	}
	if err != nil {
		return failure(err)
	}
	return r
}

// start begins a plan that is one call of the store, and calls then with the reply. It returns false if
// do has to carry out the plan; then gets ok false if that turns out later.
func (l *locks) start(ctx context.Context, p *plan, meta string, then func(r reply, ok bool)) bool {
	switch {
	case p.verb == acquire && p.until == 0 && p.prefix < 0 && !p.tells:
		r, err := acquisition(p, meta)
		if err != nil {
			return false
		}
		return l.store.StartAcquire(ctx, r, func(g store.Grant, err error) {
			switch {
			case err == nil:
				l.held.set(g.Lease, l.now())
				then(p.done, true)
			case errors.Is(err, store.ErrBusy):
				then(p.other, true)
			default:
				then(failure(err), true)
			}
		})
	case p.verb == release:
		g, ok := l.held.get(p.name, p.value)
		if !ok {
			return false
		}
		return l.store.StartRelease(ctx, store.ReleaseRequest{Lease: g.Lease}, func(err error) {
			notHeld := errors.Is(err, store.ErrNotHeld)
			if err != nil && !notHeld {
				then(failure(err), true)
				return
			}
			l.held.drop(g.Lease)
			then(p.done, !notHeld) // a lease that do has to look for, if this one is gone
		})
	}
	return false
}

// failure is the reply about an error.
func failure(err error) reply { return failed(codeOf(err) + " " + err.Error()) }

// codeOf returns the first word of an error reply. Clients send a command again for some words,
// such as LOADING, so errors have others.
func codeOf(err error) string {
	if errors.Is(err, store.ErrKindMismatch) {
		return "WRONGTYPE"
	}
	return "ERR"
}

// look says what the store knows of locks.
func (l *locks) look(ctx context.Context, p *plan) (reply, error) {
	if p.verb == exists {
		n := int64(0)
		for _, name := range p.names {
			st, err := l.inspect(ctx, name)
			if err != nil {
				return reply{}, err
			}
			if st.Held {
				n++
			}
		}
		return number(n), nil
	}
	st, err := l.inspect(ctx, p.name)
	if err != nil {
		return reply{}, err
	}
	h := st.Holdings()
	switch {
	case len(h) == 0:
		return p.free, nil
	case p.verb == value:
		return text(shownTo(h[0].Holder)), nil
	}
	return number(remains(h[0].ExpiresIn, p.verb)), nil
}

// change extends, releases or compares a lease if its holder wrote the value of the plan.
func (l *locks) change(ctx context.Context, p *plan, meta string) (reply, error) {
	found, remaining, err := l.ifHeld(ctx, p)
	switch {
	case err != nil:
		return reply{}, err
	case found == isFree && p.create:
		return l.acquire(ctx, p, meta)
	case found == isFree:
		return p.free, nil
	case found == isOther:
		return p.other, nil
	case p.verb == compare:
		return number(remains(remaining, left)), nil
	}
	return p.done, nil
}

// remains is what PTTL or TTL say of a lease. They round as Redis does.
func remains(d time.Duration, v verb) int64 {
	switch {
	case d < 0:
		return -1
	case v == seconds:
		return int64((d + time.Second/2) / time.Second)
	}
	return d.Milliseconds()
}

// inspect returns the state of a lock. If the store cannot tell whether somebody holds it, that
// is an error.
func (l *locks) inspect(ctx context.Context, name string) (store.State, error) {
	st, err := l.store.Inspect(ctx, name)
	if err == nil && !st.Held && !st.Free() {
		err = fmt.Errorf("lock %q may be held: that depends on nodes that do not answer (%s)", store.Excerpt(name), store.Silent(st.Nodes))
	}
	return st, err
}

// acquire takes a lock that is free.
func (l *locks) acquire(ctx context.Context, p *plan, meta string) (reply, error) {
	r, err := acquisition(p, meta)
	if err != nil {
		return reply{}, err
	}
	g, err := l.store.Acquire(ctx, r)
	if err == nil {
		l.held.set(g.Lease, l.now())
		return p.done, nil
	}
	return l.notAcquired(ctx, p, err)
}

// acquisition is what the store is asked for.
func acquisition(p *plan, meta string) (store.AcquireRequest, error) {
	owner, err := newOwner(p.value)
	return store.AcquireRequest{Lease: store.Lease{Name: p.name, Owner: owner, Meta: meta, TTL: p.ttl}}, err
}

// notAcquired returns the reply if a lock was not taken.
func (l *locks) notAcquired(ctx context.Context, p *plan, err error) (reply, error) {
	busy, is := errors.AsType[*store.BusyError](err)
	switch {
	case !is:
		return reply{}, err
	case p.prefix < 0 && !p.tells:
		return p.other, nil
	case busy.Undecided || busy.Holder.Waiting || busy.Holder.Owner == "":
		st, err := l.inspect(ctx, p.name)
		if err != nil {
			return reply{}, err
		}
		h := st.Holdings()
		if len(h) == 0 {
			if p.tells { // nil would say that the lock was granted
				return reply{}, fmt.Errorf("%w; ask again", busy)
			}
			return p.other, nil
		}
		busy.Holder = h[0].Holder
	}
	if p.tells {
		return text(shownTo(busy.Holder)), nil
	}
	holds, isOurs := valueOf(busy.Holder.Owner)
	switch {
	case !isOurs || busy.Holder.Broken || !sameClient(holds, p.value, p.prefix):
		return p.other, nil
	case holds != p.value:
		return reply{}, errors.New("the client holds the lock with another value, which cannot be changed: it is the owner of the lease")
	}
	again := *p
	again.verb = extend
	found, _, err := l.ifHeld(ctx, &again)
	if err == nil && found != isDone {
		return p.other, nil
	}
	return p.done, err
}

// sameClient reports whether two values are of one client, whose values have the same n first
// bytes, as redislock compares them.
func sameClient(holds, value string, n int) bool {
	if n > 0 {
		holds = holds[:min(n, len(holds))]
	}
	return holds == value[:min(n, len(value))]
}

// tries is how often a lease is looked for that changes meanwhile.
const tries = 3

// ifHeld extends, releases or compares a lease if its holder wrote the value of the plan. It
// returns what is left of a lease that it only compared.
func (l *locks) ifHeld(ctx context.Context, p *plan) (outcome, time.Duration, error) {
	if g, ok := l.held.get(p.name, p.value); ok && !p.adds && p.verb != compare {
		err := l.apply(ctx, p, g.Lease, g.until.Sub(l.now()))
		if !errors.Is(err, store.ErrNotHeld) {
			return isDone, 0, err
		}
		l.held.drop(g.Lease)
	}
	return l.ifFound(ctx, p)
}

// ifFound is ifHeld for a lease that the store is asked for first.
func (l *locks) ifFound(ctx context.Context, p *plan) (outcome, time.Duration, error) {
	for range tries {
		st, err := l.inspect(ctx, p.name)
		if err != nil {
			return 0, 0, err
		}
		h, ok := heldWith(st, p)
		switch {
		case !st.Held:
			return isFree, 0, nil
		case !ok:
			return isOther, 0, nil
		case p.verb == compare:
			return isDone, h.ExpiresIn, nil
		}
		q := *p
		if p.adds {
			q.ttl += max(0, h.ExpiresIn)
		}
		err = l.apply(ctx, &q, leaseOf(st, h), h.ExpiresIn)
		if !errors.Is(err, store.ErrNotHeld) {
			return isDone, 0, err
		}
	}
	return 0, 0, fmt.Errorf("lock %q changes all the time: ask again", store.Excerpt(p.name))
}

// heldWith returns the lease whose holder wrote the value of the plan. A lease that an operator
// broke can only be released.
func heldWith(st store.State, p *plan) (store.Holding, bool) {
	for _, h := range st.Holdings() {
		if v, ok := valueOf(h.Holder.Owner); ok && v == p.value && (!h.Holder.Broken || p.verb == release) {
			return h, true
		}
	}
	return store.Holding{}, false
}

// leaseOf returns a lease as the store knows it. A renewal of it may be under way.
func leaseOf(st store.State, h store.Holding) store.Lease {
	described := h.Holder
	described.Owner = ""
	return store.Lease{Name: st.Name, Owner: h.Holder.Owner, Kind: st.Kind, Weight: h.Weight, Meta: described.Encode(), Repeated: true}
}

// shorter is how much less than what is left of its lease a client may ask for. Clients extend a
// lock by what they asked for first, or by a little less.
const shorter = time.Second

// apply extends or releases a lease of which at most remaining is left.
func (l *locks) apply(ctx context.Context, p *plan, lease store.Lease, remaining time.Duration) error {
	if p.verb == release {
		if lease.TTL == 0 { // a store that cannot send the release now tries for that long
			c := l.store.Caps()
			if lease.TTL = max(remaining, c.MinTTL, store.MinTTL); c.MaxTTL > 0 {
				lease.TTL = min(lease.TTL, c.MaxTTL)
			}
		}
		err := l.store.Release(ctx, store.ReleaseRequest{Lease: lease})
		if err == nil {
			l.held.drop(lease)
		}
		return err
	}
	if remaining > p.ttl+shorter {
		return fmt.Errorf("the lease of lock %q lasts for another %v: this server extends a lease, and never shortens it (release the lock to end it)", store.Excerpt(lease.Name), store.Round(remaining))
	}
	lease.TTL, lease.Repeated = p.ttl, true
	l.held.set(lease, l.now()) // also if the answer is lost: a release then has to know of it
	return l.store.Renew(ctx, []store.Lease{lease})[0]
}

// grants remembers leases that were granted or found, so that the next command about one of them
// need not look for it. It is no more than a help: other servers of the store change locks, too.
// It is safe for concurrent use.
type grants struct {
	mu     sync.Mutex
	byName map[string]grant
}

type grant struct {
	store.Lease
	until time.Time
}

// mostGrants bounds what is remembered.
const mostGrants = 1 << 14

func (g *grants) set(l store.Lease, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byName == nil {
		g.byName = map[string]grant{}
	}
	if _, known := g.byName[l.Name]; !known && len(g.byName) >= mostGrants {
		for any := range g.byName {
			delete(g.byName, any)
			break
		}
	}
	g.byName[l.Name] = grant{l, now.Add(l.TTL)}
}

func (g *grants) get(name, value string) (grant, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	known, ok := g.byName[name]
	if v, _ := valueOf(known.Owner); !ok || v != value {
		return grant{}, false
	}
	return known, true
}

func (g *grants) drop(l store.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byName[l.Name].Owner == l.Owner {
		delete(g.byName, l.Name)
	}
}
