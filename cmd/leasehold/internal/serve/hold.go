package serve

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// open begins a stream about the lock called name, unless the client has too many. The caller
// calls done at the end.
func (s *Server) open(r *http.Request, name string) (done func(), err error) {
	if s.leaving.Err() != nil {
		return nil, refuse(httpapi.Closing, "the server is about to end")
	}
	client := rights.Of(r.Context())
	who := who(client, addressOf(r))
	if reached := s.limits.begin(who, name, client.Limits.Streams, client.Limits.Names); reached != "" {
		return nil, refuse(httpapi.TooMany, "too many "+reached+" at a time")
	}
	return func() { s.limits.end(who, name) }, nil
}

// bounded returns ctx with the end of a wait.
func bounded(ctx context.Context, wait *httpapi.Milliseconds) (context.Context, context.CancelFunc) {
	if wait == nil || *wait < 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, wait.Duration())
}

// wait answers an acquire that waits: with lines if the client accepts them, and otherwise with
// the grant alone.
func (s *Server) wait(w http.ResponseWriter, r *http.Request, q httpapi.Request, l store.Lease) error {
	done, err := s.open(r, l.Name)
	if err != nil {
		return err
	}
	defer done()
	ctx, st := s.stream(w, r)
	defer context.AfterFunc(s.leaving, st.cancel)()
	ctx, cancel := bounded(ctx, q.Wait)
	defer cancel()
	lines := st.sse || r.Header.Get("Accept") == "application/x-ndjson"
	if !lines {
		st.beat.Stop()
	}
	var last atomic.Pointer[store.BusyError]
	g, err := s.Store.Wait(ctx, store.WaitRequest{Lease: l}, func(reason error) {
		var busy *store.BusyError
		if errors.As(reason, &busy) {
			last.Store(busy)
		}
		if lines {
			st.waits(reason)
		}
	})
	if err == nil && s.tries.isTakenBack(callOf("acquire", q.Call), s.clock.Now()) {
		err = s.takeBack(ctx, l)
	}
	if busy := last.Load(); busy != nil && errors.Is(err, context.DeadlineExceeded) {
		gaveUp := *busy
		gaveUp.Err = err
		err = &gaveUp
	}
	switch {
	case err != nil && s.leaving.Err() != nil && r.Context().Err() == nil:
		st.end(r, leaving(nil))
	case err != nil:
		st.end(r, failed(err))
	case lines:
		granted := grantOf(g, g.Since)
		st.end(r, &httpapi.Event{Event: "held", Grant: &granted})
	default:
		answer(w, grantOf(g, g.Since))
		st.end(r, nil)
	}
	return nil
}

// hold answers with the stream of a lease that lasts as long as the connection.
func (s *Server) hold(w http.ResponseWriter, r *http.Request, name string) (any, error) {
	var q httpapi.Request
	if err := s.read(w, r, &q, maxBody); err != nil {
		return nil, err
	}
	lock, err := s.lockOf(r, name, &q)
	if err != nil {
		return nil, err
	}
	done, err := s.open(r, name)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, st := s.stream(w, r)
	lease, err := s.begin(ctx, st, lock, name, r, &q)
	switch {
	case err != nil && s.leaving.Err() != nil && r.Context().Err() == nil:
		st.end(r, leaving(nil))
		return answered, nil
	case err != nil:
		st.end(r, failed(err))
		return answered, nil
	}
	held := func() *httpapi.Grant {
		at := st.at() // before the deadline is computed
		return &httpapi.Grant{LockName: statejson.NameOf(name), Owner: lease.Owner(), Token: lease.Token(), Slot: int64(lease.Slot()), At: httpapi.SpanOf(at), Valid: httpapi.SpanOf(time.Until(lease.Deadline()))}
	}
	st.hold(ttlOf(q), held)
	last := s.stay(ctx, lease, q, held)
	st.end(r, last)
	if q.Keep {
		return answered, nil // the owner may go on at another server, also if this one could not renew the lease
	}
	if last == nil && s.outlast(r, st, lease) || last != nil && last.Event == "lost" {
		lease.Release(context.WithoutCancel(ctx))
	}
	return answered, nil
}

// outlast waits for as long as a client whose connection broke may believe that it holds the lock.
// The lease is renewed meanwhile. It returns false if the server ends first: the lease then ends
// with its TTL.
func (s *Server) outlast(r *http.Request, st *stream, lease *leasehold.Lease) bool {
	until, ok := st.believed(r)
	if !ok {
		return true
	}
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-t.C:
	case <-lease.Done():
	case <-s.leaving.Done():
		return false
	}
	return true
}

// stay returns when the hold is over: with the line to end it with, or nil if the client is gone.
func (s *Server) stay(ctx context.Context, lease *leasehold.Lease, q httpapi.Request, held func() *httpapi.Grant) *httpapi.Event {
	var extend <-chan time.Time
	ttl := ttlOf(q)
	if q.Keep { // nobody else renews it, so that it ends if the client does not come back
		t := time.NewTicker(validity.RenewAfter(ttl))
		defer t.Stop()
		extend = t.C
	}
	for {
		select {
		case <-lease.Done():
			e := &httpapi.Event{Event: "lost", Reason: lease.Err().Error()}
			var lost *leasehold.LostError
			if errors.As(lease.Err(), &lost) {
				e.Cause = lost.Cause.String()
			}
			return e
		case <-ctx.Done():
			return nil
		case <-extend:
			bound, stop := clock.Bound(ctx, validity.RenewAfter(ttl))
			lease.Extend(bound) // a failure is a matter of the next one, or of the loss
			stop()
		case <-s.leaving.Done():
			bound, stop := clock.Bound(ctx, time.Second)
			lease.Extend(bound) // so that the client has time to go on elsewhere
			stop()
			if lease.Err() == nil {
				return leaving(held())
			}
		}
	}
}

func ttlOf(q httpapi.Request) time.Duration {
	if q.TTL == nil {
		return leasehold.DefaultTTL
	}
	return q.TTL.Duration()
}

// lockOf returns the lock that a hold is about.
func (s *Server) lockOf(r *http.Request, name string, q *httpapi.Request) (*leasehold.Lock, error) {
	l, err := q.Lease(name, leasehold.DefaultTTL)
	if err != nil {
		return nil, err
	}
	o := leasehold.LockOptions{TTL: l.TTL, Purpose: purposeOf(r, *q), NoRenew: q.Keep, Require: l.Require, Owner: q.Owner}
	var lock *leasehold.Lock
	switch k := l.Kind.Normal(); {
	case k.IsMutex():
		lock = s.client.Mutex(name)
	case k == store.ReadWrite && l.Weight == store.ReadWriteLimit:
		lock = s.client.RW(name).Write()
	case k == store.ReadWrite && l.Weight <= 1:
		lock = s.client.RW(name).Read()
	case k.Shared:
		return nil, invalid("kind read-write: choose read or write")
	default:
		lock = s.client.Semaphore(name, int(k.Limit))
		o.Weight = int(l.Weight)
	}
	return lock.With(o), nil
}

// begin waits for the lock, or goes on with the lease of the owner that the client names.
//
// A goroutine that waits is in this function. What needs much stack before is in functions of its
// own: otherwise 10,000 waiters would need 40 MB more.
func (s *Server) begin(ctx context.Context, st *stream, lock *leasehold.Lock, name string, r *http.Request, q *httpapi.Request) (*leasehold.Lease, error) {
	if q.Owner != "" {
		return s.goOn(ctx, lock, name, r, q)
	}
	if q.Wait != nil && *q.Wait == 0 {
		return lock.Try(ctx)
	}
	ctx, cancel := bounded(ctx, q.Wait)
	defer cancel()
	if s.leaving.Err() == nil {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(s.leaving, stop)()
	}
	return lock.With(leasehold.LockOptions{OnWait: st.waits}).Acquire(ctx)
}

// goOn goes on with the lease of the owner that the client names.
func (s *Server) goOn(ctx context.Context, lock *leasehold.Lock, name string, r *http.Request, q *httpapi.Request) (*leasehold.Lease, error) {
	l, err := leaseOf(r, name, *q)
	if err != nil {
		return nil, err
	}
	if _, err := s.again(ctx, &l); err != nil { // which never makes a lease that is gone
		return nil, err
	}
	return lock.With(leasehold.LockOptions{Owner: l.Owner}).Try(ctx)
}
