package serve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// lock answers a request about one lock. path is what follows /v1/locks/.
func (s *Server) lock(w http.ResponseWriter, r *http.Request, path string) (any, error) {
	posts := r.Method == http.MethodPost
	name, verb, err := lockPath(path, posts)
	switch {
	case err != nil:
		return nil, err
	case !posts:
		return get(s.show)(w, r, name)
	}
	var call handler
	right := rights.Lock
	switch verb {
	case "acquire":
		call = s.acquire
	case "hold":
		call = s.hold
	case "renew":
		call = s.renew
	case "release":
		call = s.release
	case "downgrade":
		call = s.downgrade
	case "resize":
		call = s.resize
	case "break":
		call, right = s.breakLease, rights.Break
	default:
		return nil, refuse(httpapi.NotFound, "there is no call "+store.Excerpt(verb)+" of a lock")
	}
	if err := s.check(r, right, name); err != nil {
		return nil, err
	}
	return call(w, r, name)
}

// show answers GET /v1/locks/NAME.
func (s *Server) show(r *http.Request, name string) (any, error) {
	if err := s.check(r, rights.Look, name); err != nil {
		return nil, err
	}
	st, err := s.Store.Inspect(r.Context(), name)
	return statejson.Of(st), err
}

// list answers GET /v1/locks. It leaves out locks that the client may not see.
func (s *Server) list(r *http.Request, _ string) (any, error) {
	client := rights.Of(r.Context())
	if !client.MayAny(rights.Look) {
		return nil, s.forbid(r, rights.Look, "")
	}
	all, err := s.Store.List(r.Context(), r.URL.Query().Get("prefix"))
	if err != nil && !errors.Is(err, store.ErrIncomplete) {
		return nil, err
	}
	l := httpapi.Locks{Locks: []statejson.State{}}
	if err != nil {
		l.Incomplete = err.Error()
	}
	for _, st := range all {
		if client.May(rights.Look, st.Name) {
			l.Locks = append(l.Locks, statejson.Of(st))
		}
	}
	return l, nil
}

// leaseOf returns the lease that a body is about, with the description of its holder.
func leaseOf(r *http.Request, name string, q httpapi.Request) (store.Lease, error) {
	l, err := q.Lease(name, leasehold.DefaultTTL)
	if err != nil {
		return l, err
	}
	if isPlain(q) {
		// Only what the client says each time: stores compare descriptions.
		h := store.Holder{Host: q.Host, PID: q.PID, Purpose: purposeOf(r, q), Trace: q.Trace}
		if h.Host == "" {
			h.Host = addressOf(r)
		}
		l.Meta = h.Encode()
	}
	return l, nil
}

// purposeOf returns the purpose that a body gives, with the name of the client, if it has one:
// that is what the server knows of it.
func purposeOf(r *http.Request, q httpapi.Request) string {
	name := rights.Of(r.Context()).Name
	switch {
	case name == "":
		return q.Purpose
	case q.Purpose == "":
		return "client " + name
	}
	return q.Purpose + " (client " + name + ")"
}

// request reads the body of a call about a lease that has an owner.
func (s *Server) request(w http.ResponseWriter, r *http.Request, name string) (q httpapi.Request, l store.Lease, err error) {
	if err = s.read(w, r, &q, maxBody); err == nil {
		l, err = ownedLeaseOf(r, name, q)
	}
	return q, l, err
}

// ownedLeaseOf is leaseOf for a call that needs an owner.
func ownedLeaseOf(r *http.Request, name string, q httpapi.Request) (store.Lease, error) {
	l, err := leaseOf(r, name, q)
	if err == nil && q.Owner == "" {
		err = invalid("the owner is missing: a random value of your own, new for each attempt and the same if you ask again")
	}
	return l, err
}

// grantOf returns the answer about a grant that was asked for at since after the request came.
func grantOf(g store.Grant, since time.Duration) httpapi.Grant {
	a := httpapi.GrantOf(g)
	a.At, a.Valid = httpapi.SpanOf(since), httpapi.SpanOf(g.Lease.TTL-validity.Drift(g.Lease.TTL))
	return a
}

// acquire answers the plain call, which waits only if it is asked to.
func (s *Server) acquire(w http.ResponseWriter, r *http.Request, name string) (any, error) {
	q, l, err := s.request(w, r, name)
	if err != nil {
		return nil, err
	}
	if !waits(q) {
		return s.tryAcquire(r.Context(), q, l)
	}
	try, ok := s.tries.begin(r.Context(), callOf("acquire", q.Call), q.Again, s.clock.Now())
	if !ok {
		return nil, errTakenBack
	}
	defer try.done()
	if isPlain(q) {
		l.Attempt = cmp.Or(l.Attempt, store.NewOwner()) // the owner may ask again
		if g, err := s.again(r.Context(), &l); err == nil {
			return grantOf(g, 0), nil
		}
		if s.Store.Caps().Nodes > 1 && store.Rank(l.Owner) == 0 {
			_, rank, _ := strings.Cut(store.NewOwnerAt(time.Now()), ".")
			l.Owner += "." + rank // the nodes order waiters by it
		}
	}
	return answered, s.wait(w, r, q, l)
}

// waits reports whether an acquire waits.
func waits(q httpapi.Request) bool { return q.Wait != nil && *q.Wait != 0 }

// tryAcquire acquires l without a wait.
func (s *Server) tryAcquire(ctx context.Context, q httpapi.Request, l store.Lease) (httpapi.Grant, error) {
	try, ok := s.tries.begin(ctx, callOf("acquire", q.Call), q.Again, s.clock.Now())
	if !ok {
		return httpapi.Grant{}, errTakenBack
	}
	defer try.done()
	plain := isPlain(q)
	if plain {
		l.Attempt = cmp.Or(l.Attempt, store.NewOwner()) // the owner may ask again
	}
	g, err := s.Store.Acquire(ctx, store.AcquireRequest{Lease: l})
	var busy *store.BusyError
	if plain && errors.As(err, &busy) && !busy.Holder.Waiting && isOf(busy.Holder.Owner, l.Owner) {
		g, err = s.again(ctx, &l)
	}
	if err == nil && s.isTakenBack(q) {
		err = s.takeBack(ctx, l)
	}
	return grantOf(g, 0), err
}

func (s *Server) isTakenBack(q httpapi.Request) bool {
	return s.tries.isTakenBack(callOf("acquire", q.Call), s.clock.Now())
}

// startAcquire is tryAcquire without a goroutine that waits: done gets the outcome. It returns false
// if tryAcquire has to do it.
func (s *Server) startAcquire(ctx context.Context, q httpapi.Request, l store.Lease, done func(httpapi.Grant, error)) bool {
	if isPlain(q) {
		return false
	}
	try, ok := s.tries.beginNow(callOf("acquire", q.Call), q.Again, s.clock.Now())
	if !ok {
		return false
	}
	started := s.Store.StartAcquire(ctx, store.AcquireRequest{Lease: l}, func(g store.Grant, err error) {
		if err == nil && s.isTakenBack(q) {
			go func() {
				defer try.done()
				done(grantOf(g, 0), s.takeBack(ctx, l))
			}()
			return
		}
		try.done()
		done(grantOf(g, 0), err)
	})
	if !started {
		try.done()
	}
	return started
}

// isPlain reports whether q is of a client that is no store over HTTP: it need not describe the
// holder each time.
func isPlain(q httpapi.Request) bool { return q.Meta == nil && q.MetaBase64 == "" }

// isOf reports whether owner is what the client calls asked: the server may have added a rank.
func isOf(owner, asked string) bool {
	rest, ok := strings.CutPrefix(owner, asked)
	return ok && (rest == "" || rest[0] == '.' && store.Rank(owner) != 0)
}

// takeBack releases what was granted to an attempt that was taken back before.
func (s *Server) takeBack(ctx context.Context, l store.Lease) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.Patience)
	defer stop()
	if err := s.Store.Release(ctx, store.ReleaseRequest{Lease: l, Undo: true}); err != nil && !errors.Is(err, store.ErrNotHeld) {
		s.Log.Warn("a lock stays taken for the TTL of an attempt that was taken back", "lock", store.Excerpt(l.Name), "error", err)
	}
	return errTakenBack
}

// errTakenBack is the error of a request that arrived after one that repeats it or takes it back.
var errTakenBack = refuse(httpapi.NotHeld, "this attempt was repeated or taken back")

// again renews the lease that the owner of l has under another description than l's, and sets l
// to it. The error matches store.ErrNotHeld if the owner has none.
func (s *Server) again(ctx context.Context, l *store.Lease) (store.Grant, error) {
	h, err := s.heldAs(ctx, l)
	if err != nil {
		return store.Grant{}, err
	}
	return store.Grant{Lease: *l, Token: h.Token, Slot: h.Slot}, s.Store.Renew(ctx, []store.Lease{*l})[0]
}

// heldAs sets l to the lease that its owner has, as the store knows it. The error matches
// store.ErrNotHeld if there is none.
func (s *Server) heldAs(ctx context.Context, l *store.Lease) (store.Holding, error) {
	st, err := s.Store.Inspect(ctx, l.Name)
	if err != nil {
		return store.Holding{}, err
	}
	for _, h := range st.Holdings() {
		if isOf(h.Holder.Owner, l.Owner) {
			l.Owner, l.Kind, l.Weight, l.Meta = h.Holder.Owner, st.Kind, h.Weight, ""
			described := h.Holder
			described.Owner = ""
			if described != (store.Holder{}) {
				l.Meta = described.Encode()
			}
			return h, nil
		}
	}
	return store.Holding{}, store.ErrNotHeld
}

// renew answers the plain call.
func (s *Server) renew(w http.ResponseWriter, r *http.Request, name string) (any, error) {
	q, l, err := s.request(w, r, name)
	if err != nil {
		return nil, err
	}
	err = s.Store.Renew(r.Context(), []store.Lease{l})[0]
	if errors.Is(err, store.ErrNotHeld) && isPlain(q) {
		_, err = s.again(r.Context(), &l)
	}
	return httpapi.Renewal{Valid: httpapi.SpanOf(l.TTL - validity.Drift(l.TTL))}, err
}

// renewAll answers POST /v1/renew.
func (s *Server) renewAll(w http.ResponseWriter, r *http.Request, _ string) (any, error) {
	if r.Method != http.MethodPost {
		return nil, wrongMethod(w, "POST")
	}
	var q httpapi.Renewals
	if err := s.read(w, r, &q, maxBatch); err != nil {
		return nil, err
	}
	results := make([]*httpapi.Problem, len(q.Leases))
	var leases []store.Lease
	var at []int
	for i, one := range q.Leases {
		name, err := one.Text()
		l := store.Lease{}
		if err == nil {
			l, err = leaseOf(r, name, one.Request)
		}
		if err == nil {
			err = s.check(r, rights.Lock, name)
		}
		if err != nil {
			results[i] = problemOf(err)
		} else {
			leases, at = append(leases, l), append(at, i)
		}
	}
	if len(leases) > 0 {
		for i, err := range s.Store.Renew(r.Context(), leases) {
			if err != nil {
				results[at[i]] = httpapi.ProblemOf(err)
			}
		}
	}
	return httpapi.Renewed{Results: results}, nil
}

// release answers the plain call.
func (s *Server) release(w http.ResponseWriter, r *http.Request, name string) (any, error) {
	q, l, err := s.request(w, r, name)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(r.Context()), s.Patience) // others want the lock
	defer stop()
	return noContent, s.endLease(ctx, q, l)
}

// endLease does what a release asks for. It has to go on when the client is gone.
func (s *Server) endLease(ctx context.Context, q httpapi.Request, l store.Lease) error {
	if q.Undo || q.Refuse {
		s.tries.takeBack(callOf("acquire", q.Call), s.clock.Now())
	}
	if q.Refuse {
		return nil
	}
	if q.Call != "" && !q.Undo { // an earlier try, whose client has gone, may be releasing it
		try, ok := s.tries.begin(ctx, callOf("release", q.Call), 0, s.clock.Now())
		if !ok {
			return ctx.Err()
		}
		defer try.done()
	}
	err := s.Store.Release(ctx, store.ReleaseRequest{Lease: l, Renewed: q.Renewed, Undo: q.Undo})
	if err = s.released(q, err); errors.Is(err, store.ErrNotHeld) && isPlain(q) {
		if _, e := s.heldAs(ctx, &l); e == nil {
			err = s.Store.Release(ctx, store.ReleaseRequest{Lease: l, Renewed: true})
		}
	}
	return err
}

// released returns the outcome of a release for which the store returned err.
func (s *Server) released(q httpapi.Request, err error) error {
	call := callOf("release", q.Call)
	switch {
	case err == nil:
		s.tries.release(call, s.clock.Now())
	case q.Again > 0 && errors.Is(err, store.ErrNotHeld) && s.tries.hasReleased(call, s.clock.Now()):
		return nil
	}
	return err
}

// startRelease is endLease without a goroutine that waits: done gets the outcome. It returns false if
// endLease has to do it.
func (s *Server) startRelease(ctx context.Context, q httpapi.Request, l store.Lease, done func(error)) bool {
	if isPlain(q) || q.Undo || q.Refuse {
		return false
	}
	try, ok := s.tries.beginNow(callOf("release", q.Call), 0, s.clock.Now())
	if !ok {
		return false
	}
	started := s.Store.StartRelease(ctx, store.ReleaseRequest{Lease: l, Renewed: q.Renewed}, func(err error) {
		err = s.released(q, err)
		try.done()
		done(err)
	})
	if !started {
		try.done()
	}
	return started
}

// downgrade makes a writer a reader.
func (s *Server) downgrade(w http.ResponseWriter, r *http.Request, name string) (any, error) {
	_, l, err := s.request(w, r, name)
	if err != nil {
		return nil, err
	}
	g, err := s.Store.Downgrade(r.Context(), l)
	return grantOf(g, 0), err
}

// resize changes the permits of a semaphore.
func (s *Server) resize(w http.ResponseWriter, r *http.Request, name string) (any, error) {
	var q httpapi.Resize
	if err := s.read(w, r, &q, maxBody); err != nil {
		return nil, err
	}
	if q.From < 1 || q.To < 1 {
		return nil, invalid("from and to are numbers of permits: each is 1 at least")
	}
	return noContent, s.Store.Resize(r.Context(), name, store.Semaphore(q.From), store.Semaphore(q.To))
}

// breakLease breaks a lease, and says how long it can last. The caller asks again to learn when
// it is over.
func (s *Server) breakLease(w http.ResponseWriter, r *http.Request, name string) (any, error) {
	var q httpapi.Break
	if err := s.read(w, r, &q, maxBody); err != nil {
		return nil, err
	}
	at := time.Now()
	if q.At != nil {
		at = *q.At
	}
	left, err := s.breakAt(r, leasehold.BreakRequest{Name: name, Token: q.Token, Owner: q.Owner, By: q.By, Reason: q.Reason, Now: q.Now}, at)
	return httpapi.BreakAnswer{Left: httpapi.In(left)}, err
}

// Break breaks a lease for the client of r, whose right the caller has checked, and notes that in
// the audit. It returns how long the lease can last, and zero if it is over.
func (s *Server) Break(r *http.Request, b leasehold.BreakRequest) (left time.Duration, err error) {
	return s.breakAt(r, b, time.Now())
}

func (s *Server) breakAt(r *http.Request, b leasehold.BreakRequest, at time.Time) (left time.Duration, err error) {
	if name := rights.Of(r.Context()).Name; name != "" && b.By != name {
		if b.By != "" {
			name += " (" + b.By + ")"
		}
		b.By = name
	}
	if b.Owner != "" {
		left, err = s.Store.BreakLease(r.Context(), store.BreakRequest{Name: b.Name, Owner: b.Owner, Token: b.Token, Now: b.Now, By: b.By, Reason: b.Reason, At: at})
	} else { // find the owner, and do not wait until the lease is over
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		broken := false
		b.OnWait = func(reason error) {
			var busy *leasehold.BusyError
			if errors.As(reason, &busy) {
				left, broken = busy.ExpiresIn, true
			}
			stop()
		}
		if err = s.client.Operator().Break(ctx, b); broken {
			err = nil
		}
	}
	outcome := "done"
	if err != nil {
		outcome = err.Error()
	}
	s.audit(r, "break", b.Name, slog.String("token", b.Token.String()), slog.String("owner", store.Excerpt(b.Owner)), slog.Bool("now", b.Now), slog.String("by", store.Excerpt(b.By)), slog.String("reason", store.Excerpt(b.Reason)), slog.String("outcome", store.Excerpt(outcome)))
	return left, err
}
