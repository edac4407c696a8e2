package remotestore

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

// engine is the store behind one or several servers.
type engine struct {
	servers, hosts []string
	o              Options
	clock          clock.Clock
	caps           store.Caps
	class          atomic.Uint32
	preferred      atomic.Int64 // the server that answered last
	gatherers      []*gatherer  // of each server

	gate *gate.Gate // of calls, batches, and attempts that are being taken back
}

func newEngine(servers []string, o Options) *engine {
	s := &engine{servers: servers, o: o, clock: clock.System(), gate: gate.New(store.ErrClosed)}
	for _, server := range servers {
		u, err := url.Parse(server)
		if err != nil {
			panic("leasehold: a URL that was parsed before: " + err.Error())
		}
		s.hosts = append(s.hosts, u.Host)
		s.gatherers = append(s.gatherers, &gatherer{s: s})
	}
	return s
}

// ask asks a server what the store can do.
func (s *engine) ask(ctx context.Context) error {
	var caps httpapi.Caps
	if err := s.run(ctx, &call{op: "open", method: http.MethodGet, path: "/v1/store", out: &caps}); err != nil {
		return err
	}
	s.caps = caps.Store()
	s.setClass(s.caps.Class)
	return nil
}

func (s *engine) setClass(c store.Class) { s.class.Store(uint32(c)) }

func (s *engine) prefer(server int) {
	if s.preferred.Swap(int64(server)) != int64(server) {
		s.o.Logger.Info("another leasehold server answers", "server", s.hosts[server])
	}
}

// Caps implements driver.Engine.
func (s *engine) Caps() store.Caps {
	c := s.caps
	c.Class, c.EndsCalls = store.Class(s.class.Load()), true
	return c
}

// Acquire implements driver.Engine.
func (s *engine) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if err := r.CheckClass(s.Caps()); err != nil {
		return store.Grant{}, err
	}
	return s.grant(ctx, "acquire", r.Lease)
}

// grant asks for a grant, and takes the attempt back if its outcome is unknown.
func (s *engine) grant(ctx context.Context, op string, l store.Lease) (store.Grant, error) {
	if err := s.gate.Enter(); err != nil {
		return store.Grant{}, err
	}
	defer s.gate.Leave()
	var g httpapi.Grant
	c := &call{op: op, name: l.Name, verb: op, gathers: op == "acquire", request: httpapi.RequestOf(l), out: &g}
	c.request.Call = store.NewOwner()
	if err := s.run(ctx, c); err != nil {
		if op == "acquire" {
			s.undo(l, c.request.Call, c.others())
		}
		return store.Grant{}, err
	}
	s.refuse(l, c.request.Call, c.others())
	g.Repeated = g.Repeated || len(c.ambiguous) > 0
	return g.Store(l), nil
}

// Renew implements driver.Engine. It sends one request, whatever the number of leases.
func (s *engine) Renew(ctx context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	var q httpapi.Renewals
	for _, l := range leases {
		q.Leases = append(q.Leases, httpapi.NamedRequest{LockName: statejson.NameOf(l.Name), Request: httpapi.RequestOf(l)})
	}
	var a httpapi.Renewed
	err := s.run(ctx, &call{op: "renew", method: http.MethodPost, path: "/v1/renew", body: q, out: &a})
	if err == nil && len(a.Results) != len(leases) {
		err = errors.New("the server answered about another number of leases than it was asked about")
	}
	if err != nil {
		return fill(errs, err)
	}
	for i, problem := range a.Results {
		if problem != nil {
			errs[i] = problem.Err(leases[i].Name)
		}
	}
	return errs
}

// fill sets every entry of errs.
func fill(errs []error, err error) []error {
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// Release implements driver.Engine.
func (s *engine) Release(ctx context.Context, r store.ReleaseRequest) error {
	c := &call{op: "release", name: r.Name, verb: "release", gathers: true, request: httpapi.RequestOf(r.Lease)}
	c.request.Renewed, c.request.Undo, c.request.Call = r.Renewed, r.Undo, store.NewOwner()
	err := s.run(ctx, c)
	if errors.Is(err, store.ErrNotHeld) && len(c.others()) > 0 {
		return nil // the server that may have released it could not say so
	}
	return err
}

// Inspect implements driver.Engine.
func (s *engine) Inspect(ctx context.Context, name string) (store.State, error) {
	var a statejson.State
	if err := s.run(ctx, &call{op: "inspect", name: name, method: http.MethodGet, path: pathOf(name, ""), out: &a}); err != nil {
		return store.State{}, err
	}
	return a.Store()
}

// List implements driver.Engine. It leaves out locks that the client may not see.
func (s *engine) List(ctx context.Context, prefix string) ([]store.State, error) {
	var a httpapi.Locks
	if err := s.run(ctx, &call{op: "list", method: http.MethodGet, path: "/v1/locks?prefix=" + url.QueryEscape(prefix), out: &a}); err != nil {
		return nil, err
	}
	states := make([]store.State, 0, len(a.Locks))
	for _, j := range a.Locks {
		st, err := j.Store()
		if err != nil {
			return states, err
		}
		states = append(states, st)
	}
	if a.Incomplete != "" {
		return states, &incompleteError{a.Incomplete}
	}
	return states, nil
}

// incompleteError is the error of a list that the server could not complete.
type incompleteError struct{ why string }

func (e *incompleteError) Error() string        { return e.why }
func (e *incompleteError) Is(target error) bool { return target == store.ErrIncomplete }

// Downgrade implements driver.Engine.
func (s *engine) Downgrade(ctx context.Context, l store.Lease) (store.Grant, error) {
	return s.grant(ctx, "downgrade", l)
}

// Resize implements driver.Engine.
func (s *engine) Resize(ctx context.Context, name string, from, to store.Kind) error {
	return s.run(ctx, &call{op: "resize", name: name, verb: "resize", body: httpapi.Resize{From: from.Normal().Limit, To: to.Normal().Limit}})
}

// BreakLease implements driver.Engine.
func (s *engine) BreakLease(ctx context.Context, r store.BreakRequest) (time.Duration, error) {
	q := httpapi.Break{Token: r.Token, Owner: r.Owner, Reason: r.Reason, Now: r.Now, By: r.By}
	if !r.At.IsZero() {
		q.At = &r.At
	}
	var a httpapi.BreakAnswer
	err := s.run(ctx, &call{op: "break", name: r.Name, verb: "break", body: q, out: &a})
	return a.Left.Duration(), err
}

// ReleaseAndRejoin implements driver.Engine. It only releases.
func (s *engine) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued bool, err error) {
	return false, s.Release(ctx, r)
}

// NotifyBroken implements driver.Engine. The next renewal tells.
func (s *engine) NotifyBroken(func(owner string)) (stop func()) { return func() {} }

// Close implements driver.Engine. It ends calls, and waits for attempts that are being taken back,
// for three seconds at most.
func (s *engine) Close() error {
	s.gate.Close(settledLate+time.Second, func() {})
	if t, ok := s.o.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return nil
}
