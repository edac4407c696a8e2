package remotestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/store"
)

// Servers send a line of a stream every ten seconds at least. silence is how long a stream may
// be silent, and firstLine how long, besides the timeout, until it begins.
const (
	firstLine = 10 * time.Second
	silence   = 30 * time.Second
)

// Wait implements driver.Engine. If the connection breaks or the server ends, the wait begins anew at another
// server, with another owner of the same rank: in a store that orders waiters by rank it keeps
// its place, and in others it goes to the end.
func (s *engine) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	if err := r.CheckClass(s.Caps()); err != nil {
		return store.Grant{}, err
	}
	if err := s.gate.Enter(); err != nil {
		return store.Grant{}, err
	}
	defer s.gate.Leave()
	if ctx.Err() != nil {
		return store.Grant{}, ctx.Err()
	}
	ctx, cancel := s.gate.Until(ctx)
	defer cancel()
	began := s.clock.Now()
	l := r.Lease
	first := int(s.preferred.Load())
	nodes := make([]store.NodeOutcome, len(s.servers))
	number, again := store.NewOwner(), 0
	for i := 0; ; {
		server := (first + i) % len(s.servers)
		sent := s.clock.Now()
		q := httpapi.RequestOf(l)
		q.Call, q.Again = number, again
		g, answered, err := s.waitAt(ctx, server, r.Name, q, reason)
		if err == nil {
			s.prefer(server)
			return s.settle(ctx, l, g, began, sent)
		}
		none := isUnanswered(err)
		if (none || ctx.Err() != nil) && !refused(err) {
			again++
		}
		switch {
		case ctx.Err() != nil:
			if again > 0 {
				s.undo(l, number, map[int]bool{server: true})
			}
			return store.Grant{}, s.over(ctx, "wait", r.Name, nil)
		case none && !answered && !refused(err) && again <= 2:
			continue // that server alone knows what became of the request
		case again > 0 && errors.Is(err, store.ErrNotHeld): // an earlier try has ended meanwhile
		case !none && !isClosing(err):
			return store.Grant{}, err
		case again > 0:
			s.undo(l, number, map[int]bool{server: true})
		}
		if again > 0 || answered { // what the owner did before is being taken back, by us or by a server that ends
			l.Owner, number, again = store.SameRank(l.Owner), store.NewOwner(), 0
		}
		nodes[server] = store.NodeOutcome{Node: s.hosts[server], Outcome: store.Unreachable, Err: err}
		s.preferred.CompareAndSwap(int64(server), int64((server+1)%len(s.servers)))
		if i++; answered {
			first, i = server+1, 0
			continue
		}
		if reason != nil {
			reason(&store.QuorumError{Op: "wait", Name: r.Name, Need: 1, Nodes: nodes})
		}
		if i%len(s.servers) == 0 && !clock.Sleep(ctx, min(time.Duration(i)*10*time.Millisecond, time.Second)) {
			return store.Grant{}, s.over(ctx, "wait", r.Name, nodes)
		}
	}
}

// settle returns the grant of l that a server reported as g, since the request that it sent to
// its store. began and sent are when Wait was called and when the request left.
func (s *engine) settle(ctx context.Context, l store.Lease, g httpapi.Grant, began, sent clock.Instant) (store.Grant, error) {
	grant := g.Store(l)
	grant.Since = sent.Sub(began)
	at := g.At.Duration()
	if at/100 <= l.TTL/10 {
		grant.Since += at - at/100 // the clocks may differ by so much
		return grant, nil
	}
	now := s.clock.Now()
	if err := s.Renew(ctx, []store.Lease{grant.Lease})[0]; err != nil {
		s.undo(grant.Lease, "", map[int]bool{int(s.preferred.Load()): true})
		return store.Grant{}, err
	}
	grant.Since, grant.Lease.Repeated = now.Sub(began), true
	return grant, nil
}

// waitAt waits at one server. answered reports whether the server has answered at all.
func (s *engine) waitAt(ctx context.Context, server int, name string, q httpapi.Request, reason func(error)) (g httpapi.Grant, answered bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var silent atomic.Bool
	timer := time.AfterFunc(s.o.Timeout+firstLine, func() { silent.Store(true); stop() })
	defer timer.Stop()
	unbounded := httpapi.Milliseconds(-1)
	q.Wait = &unbounded
	none := func(err error) error {
		if silent.Load() {
			err = fmt.Errorf("the server was silent for %v: %w", silence, context.DeadlineExceeded)
		}
		return &unanswered{err}
	}
	a, err := s.do(ctx, server, http.MethodPost, pathOf(name, "/acquire"), q, "application/x-ndjson")
	if err != nil {
		return g, false, none(err)
	}
	if a.problem != nil {
		return g, true, a.problem.Err(name)
	}
	defer a.body.Close()
	for d := json.NewDecoder(a.body); ; {
		timer.Reset(silence)
		var e httpapi.Event
		if err := d.Decode(&e); err != nil {
			return g, answered, none(err)
		}
		answered = true
		switch {
		case e.Event == "held" && e.Grant != nil:
			return *e.Grant, true, nil
		case e.Event == "waiting" && e.Problem != nil && reason != nil:
			reason(e.Problem.Err(name))
		case e.Event == "failed" && e.Problem != nil:
			return g, true, e.Problem.Err(name)
		case e.Event == "leaving":
			return g, true, httpapi.New(httpapi.Closing, "the server is about to end").Err(name)
		}
	}
}
