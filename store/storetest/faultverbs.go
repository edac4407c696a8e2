package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// encounter is one call that meets a fault. prepare sets the functions: call is made while the fault
// lasts; free is called when it is over, and lets a call return that waits for another owner; judge
// then fails the trial if err or what is left is wrong.
type encounter struct {
	*trial
	fault
	call  func(ctx context.Context) error
	free  func()
	judge func()
	err   error
}

var verbs = []struct {
	name    string
	offered func(store.Caps) bool
	prepare func(*encounter)
}{
	{"acquire", nil, func(e *encounter) { e.acquires(e.request(e.name(), e.long)) }},
	{"acquire a lock that was used", nil, func(e *encounter) { e.acquires(e.used(e.request(e.name(), e.long))) }},
	{"acquire a permit", kinds, func(e *encounter) { e.acquires(e.used(e.permit())) }},
	{"wait", queues, func(e *encounter) { e.waitsFree(e.request(e.name(), e.long)) }},
	{"wait for a lock that was used", queues, func(e *encounter) { e.waitsFree(e.used(e.request(e.name(), e.long))) }},
	{"wait for a permit", kinds, func(e *encounter) { e.waitsFree(e.permit()) }},
	{"wait in the queue", queues, func(e *encounter) { e.waitsBehind(e.request(e.name(), e.long)) }},
	{"wait for a permit in the queue", kinds, func(e *encounter) { e.waitsBehind(e.of(store.Semaphore(2), 2, e.name(), e.long)) }},
	{"give up a place", queues, func(e *encounter) { e.givesUp(e.request(e.name(), e.long)) }},
	{"give up a place for permits", kinds, func(e *encounter) { e.givesUp(e.of(store.Semaphore(2), 2, e.name(), e.long)) }},
	{"hand-off", queues, func(e *encounter) { e.isHandedOn(e.request(e.name(), e.long)) }},
	{"hand-off of permits", kinds, func(e *encounter) { e.isHandedOn(e.of(store.Semaphore(2), 2, e.name(), e.long)) }},
	{"renew", nil, func(e *encounter) { e.renews(e.request(e.name(), e.long)) }},
	{"renew a permit", kinds, func(e *encounter) { e.renews(e.permit()) }},
	{"release", nil, func(e *encounter) { e.releases(e.request(e.name(), e.long)) }},
	{"release a permit", kinds, func(e *encounter) { e.releases(e.permit()) }},
	{"rejoin", func(c store.Caps) bool { return c.Rejoins }, (*encounter).rejoins},
	{"break", breakable, func(e *encounter) { e.breaks(false) }},
	{"break at once", breakable, func(e *encounter) { e.breaks(true) }},
	{"downgrade", kinds, (*encounter).downgrades},
	{"resize", func(c store.Caps) bool { return kinds(c) && c.Nodes <= 1 && !c.NoResize }, (*encounter).resizes},
	{"inspect", nil, (*encounter).inspects},
	{"list", nil, (*encounter).lists},
}

func queues(c store.Caps) bool { return !c.NoQueue }

func breakable(c store.Caps) bool { return !c.NoBreaks }

func kinds(c store.Caps) bool { return !c.MutexesOnly }

// permit returns the request of a permit.
func (e *encounter) permit() store.Lease { return e.of(store.Semaphore(2), 1, e.name(), e.long) }

// used acquires and releases a lock, so that the store knows it, and returns r.
func (e *encounter) used(r store.Lease) store.Lease {
	before := r
	before.Owner = store.NewOwner()
	e.acquire(e.first, before)
	e.release(e.first, before)
	return r
}

// failed reports whether the call has failed, and requires that it may.
func (e *encounter) failed() bool {
	e.Helper()
	switch {
	case e.err == nil && e.gone:
		e.Fatalf("with a context that has ended: got no error, want %v", context.Canceled)
	case e.err == nil:
		return false
	case errors.Is(e.err, context.Canceled) && (e.gone || e.cancels):
	case !e.gone && errors.Is(e.err, store.ErrIncomplete): // a list says what it has not seen
	case !e.unknown(e.err) || e.gone || !e.cancels && !e.refuses && !e.options.GivesUp:
		e.Fatalf("got error %v", e.err)
	case e.refuses && errors.Is(e.err, store.ErrAmbiguous):
		e.Fatalf("refused with %v, want an error that does not match %v", e.err, store.ErrAmbiguous)
	}
	return true
}

// unknown reports whether err says nothing of the lock.
func (e *encounter) unknown(err error) bool {
	return (errors.Is(err, store.ErrQuorum) || errors.Is(err, store.ErrIncomplete)) && !errors.Is(err, store.ErrNotHeld) && !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrKindMismatch)
}

// again repeats a call until it succeeds, since connections may still break. It may only fail with
// an error that says nothing of the lock.
func (e *encounter) again(what string, call func() error) {
	e.Helper()
	e.eventually(what, func() bool {
		err := call()
		if err != nil && !e.unknown(err) {
			e.Fatalf("%s: got error %v", what, err)
		}
		return err == nil
	})
}

// nothingLeft requires that the call has left nothing, now and later.
func (e *encounter) nothingLeft(name string) {
	e.Helper()
	e.vacant("nothing is left of a call that failed", name)
	e.takeAndKeep(name)
}

// has requires that r alone has the lock, and can renew and release it.
func (e *encounter) has(r store.Lease, g store.Grant) {
	e.Helper()
	e.again("renew", func() error { return e.renew(e.first, r) })
	if st := e.heldBy(r); st.Token != g.Token || len(st.Holdings()) != 1 || len(st.Queue) != 0 {
		e.Fatalf("inspect: %+v, want %s alone with token %v", st, r.Owner, g.Token)
	}
	e.over(r)
}

// over requires that r can be released, and leaves nothing.
func (e *encounter) over(r store.Lease) {
	e.Helper()
	e.again("release", func() error { return e.first.Release(e.Context(), store.ReleaseRequest{Lease: r}) })
	e.nothingLeft(r.Name)
}

func (e *encounter) acquires(r store.Lease) {
	var g store.Grant
	e.call = func(ctx context.Context) (err error) {
		g, err = e.first.Acquire(ctx, store.AcquireRequest{Lease: r})
		return err
	}
	e.judge = func() { e.acquired(r, &g) }
}

// acquired judges a call that acquires r.
func (e *encounter) acquired(r store.Lease, g *store.Grant) {
	if e.failed() {
		e.nothingLeft(r.Name)
		return
	}
	r.Owner = g.Lease.Owner
	e.has(r, *g)
}

func (e *encounter) waitsFree(r store.Lease) {
	var g store.Grant
	e.call = func(ctx context.Context) (err error) {
		g, err = e.first.Wait(ctx, store.WaitRequest{Lease: r}, nil)
		return err
	}
	e.judge = func() { e.acquired(r, &g) }
}

func (e *encounter) waitsBehind(r store.Lease) {
	holder := r
	holder.Owner = store.NewOwner()
	e.acquire(e.second, holder)
	e.waitsFree(r)
	e.free = func() {
		if err := e.second.Release(e.Context(), store.ReleaseRequest{Lease: holder}); err != nil {
			e.Errorf("release by the holder: %v", err)
		}
	}
}

// queuesBehind has the first store wait behind a holder.
func (e *encounter) queuesBehind(holder store.Lease) *waiting {
	e.Helper()
	e.acquire(e.second, holder)
	next := store.WaitRequest{Lease: holder}
	next.Owner = store.NewOwner()
	w := e.wait(e.first, next)
	e.eventually("the waiter has a place", func() bool { return w.over() || len(w.reports()) > 0 })
	e.waits(w)
	return w
}

// givesUp: a wait that is given up while its store meets the fault leaves no place.
func (e *encounter) givesUp(holder store.Lease) {
	w := e.queuesBehind(holder)
	e.call = func(context.Context) error {
		w.cancel()
		<-w.done
		return w.err
	}
	e.judge = func() {
		if !errors.Is(e.err, context.Canceled) && !e.unknown(e.err) {
			e.Fatalf("got error %v, want %v", e.err, context.Canceled)
		}
		if e.refuses { // the place could not be given up then
			_ = e.first.Release(e.Context(), store.ReleaseRequest{Lease: w.Lease})
		}
		e.queued("the place is gone", holder.Name)
		e.release(e.second, holder)
		e.nothingLeft(holder.Name)
	}
}

// isHandedOn: a waiter gets the lock that is released while the waiter's store meets the fault.
func (e *encounter) isHandedOn(holder store.Lease) {
	w := e.queuesBehind(holder)
	e.call = func(context.Context) error {
		return e.second.Release(e.Context(), store.ReleaseRequest{Lease: holder})
	}
	e.judge = func() {
		if e.err != nil {
			e.Fatalf("release by the holder: %v", e.err)
		}
		if e.refuses { // the wait may have ended
			w.cancel()
			<-w.done
			if w.err != nil { // what it was handed could not be given back then
				_ = e.first.Release(e.Context(), store.ReleaseRequest{Lease: w.Lease})
				e.nothingLeft(holder.Name)
				return
			}
		}
		e.gets("the waiter gets the lock", w)
		e.has(w.Lease, w.grant)
	}
}

func (e *encounter) renews(r store.Lease) {
	g := e.acquire(e.first, r)
	e.call = func(ctx context.Context) error { return e.first.Renew(ctx, []store.Lease{g.Lease})[0] }
	e.judge = func() {
		e.failed()
		e.has(r, g)
	}
}

func (e *encounter) releases(r store.Lease) {
	e.acquire(e.first, r)
	e.call = func(ctx context.Context) error { return e.first.Release(ctx, store.ReleaseRequest{Lease: r}) }
	e.judge = func() {
		e.released(r)
		e.nothingLeft(r.Name)
	}
}

// released judges the release of r, and repeats it if it has failed.
func (e *encounter) released(r store.Lease) {
	e.Helper()
	if !e.failed() {
		return
	}
	if e.gone {
		e.heldBy(r)
	}
	e.again("release again", func() error {
		err := e.first.Release(e.Context(), store.ReleaseRequest{Lease: r})
		if !e.gone && errors.Is(err, store.ErrNotHeld) {
			return nil // the first call has released it
		}
		return err
	})
}

func (e *encounter) rejoins() {
	r := e.request(e.name(), e.long)
	e.acquire(e.first, r)
	w := e.wait(e.second, e.applicant(r.Name, e.long))
	e.eventually("the waiter has a place", func() bool { return w.over() || len(w.reports()) > 0 })
	place := unclaimed{next: e.applicant(r.Name, e.long)}
	next := place.next
	var queued bool
	e.call = func(ctx context.Context) (err error) {
		place.start = e.now()
		queued, err = e.first.ReleaseAndRejoin(ctx, store.ReleaseRequest{Lease: r}, next)
		return err
	}
	e.judge = func() {
		e.released(r)
		e.gets("the waiter gets the lock", w)
		if e.err == nil && !e.refuses && !queued {
			e.Fatalf("rejoin behind a waiter: no place was taken")
		}
		if e.err != nil || !queued {
			_ = e.first.Release(e.Context(), store.ReleaseRequest{Lease: next.Lease}) // which has no lease
			e.queued("a place that was given up is gone", r.Name)
			e.release(e.second, w.Lease)
			e.nothingLeft(r.Name)
			return
		}
		e.release(e.second, w.Lease)
		n := e.waitAt(e.first, place)
		e.gets("the place gets the lock", n)
		e.has(n.Lease, n.grant)
	}
}

func (e *encounter) breaks(now bool) {
	r := e.request(e.name(), e.long)
	e.acquire(e.first, r)
	b := breakRequest(e.trial, r)
	b.Now = now
	var left time.Duration
	call := func(ctx context.Context) (err error) {
		left, err = e.first.BreakLease(ctx, b)
		return err
	}
	e.call = call
	e.judge = func() {
		if e.failed() {
			if e.gone {
				e.again("renew a lease that was not broken", func() error { return e.renew(e.first, r) })
			}
			e.again("break again", func() error { return call(e.Context()) })
		}
		if (left == 0) != now {
			e.Fatalf("the lease lasts for %v", left)
		}
		e.notHeld("renew of a lease that was broken", e.renew(e.second, r))
		if st := e.inspect(e.second, r.Name); st.Held == now || st.Broken == nil || st.Broken.Owner != r.Owner || st.Broken.Reason != b.Reason {
			e.Fatalf("inspect: %+v, want held: %v, and the note", st, !now)
		}
		_ = e.first.Release(e.Context(), store.ReleaseRequest{Lease: r, Renewed: true})
		endsBroken(e.trial, e.second, b)
		e.nothingLeft(r.Name)
	}
}

func (e *encounter) downgrades() {
	r := e.writer(e.name())
	g := e.acquire(e.first, r)
	var down store.Grant
	call := func(ctx context.Context) (err error) {
		down, err = e.first.Downgrade(ctx, r)
		return err
	}
	e.call = call
	e.judge = func() {
		if e.failed() {
			e.again("downgrade again", func() error { return call(e.Context()) })
		}
		if down.Token <= g.Token {
			e.Fatalf("token %v, want more than that of the writer, %v", down.Token, g.Token)
		}
		other := e.reader(r.Name)
		e.acquire(e.second, other)
		e.release(e.second, other)
		e.over(down.Lease)
	}
}

func (e *encounter) resizes() {
	r := e.permit()
	e.acquire(e.first, r)
	three := store.Semaphore(3)
	call := func(ctx context.Context) error { return e.first.Resize(ctx, r.Name, r.Kind, three) }
	e.call = call
	e.judge = func() {
		if e.failed() {
			e.again("resize again", func() error { return call(e.Context()) })
		}
		other := e.of(three, 2, r.Name, e.long)
		e.acquire(e.second, other)
		e.release(e.second, other)
		e.over(r)
	}
}

func (e *encounter) inspects() {
	r := e.request(e.name(), e.long)
	e.acquire(e.second, r)
	e.call = func(ctx context.Context) error {
		st, err := e.first.Inspect(ctx, r.Name)
		if err == nil && st.Holder.Owner != r.Owner {
			e.Errorf("%+v, want it held by %s", st, r.Owner)
		}
		return err
	}
	e.judge = func() {
		e.failed()
		e.heldBy(r)
	}
}

func (e *encounter) lists() {
	r := e.request(e.name(), e.long)
	e.acquire(e.second, r)
	e.call = func(ctx context.Context) error {
		all, err := e.first.List(ctx, r.Name)
		if err == nil && (len(all) != 1 || all[0].Holder.Owner != r.Owner) {
			e.Errorf("%+v, want the lock of %s", all, r.Owner)
		}
		return err
	}
	e.judge = func() {
		e.failed()
		e.again("list again", func() error { return e.call(e.Context()) })
	}
}
