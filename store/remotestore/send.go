package remotestore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/store"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

// pathOf returns the path of a call of the lock called name.
func pathOf(name, verb string) string {
	return "/v1/locks/" + strings.ReplaceAll(url.PathEscape(name), ".", "%2E") + verb
}

// answer is what a server answered. problem is nil if it did what was asked.
type answer struct {
	server  int
	problem *httpapi.Problem
	body    io.ReadCloser
}

// do sends one request to one server. On an error the request may have been received, unless the
// error is refused.
func (s *engine) do(ctx context.Context, server int, method, path string, body any, accept string) (*answer, error) {
	var b io.Reader
	switch lines := body.(type) {
	case nil:
	case []byte:
		b = bytes.NewReader(lines)
	default:
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		b = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.servers[server]+path, b)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		// The caller decides what is sent again: the transport must not.
		r.GetBody = nil
	}
	if s.o.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.o.Token)
	}
	r.Header.Set("Accept", accept)
	resp, err := s.o.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if class, err := store.ParseClass(resp.Header.Get(httpapi.ClassHeader)); err == nil {
		s.setClass(class)
	}
	a := &answer{server: server, body: resp.Body}
	if resp.StatusCode/100 == 2 {
		return a, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "application/problem+json" {
		a.problem = &httpapi.Problem{}
		if err := json.Unmarshal(text, a.problem); err != nil {
			return nil, fmt.Errorf("the server answered %s with a problem that is no JSON: %w", resp.Status, err)
		}
		return a, nil
	}
	return nil, fmt.Errorf("the answer is not from a leasehold server: %s: %s", resp.Status, store.Excerpt(string(text)))
}

// refused reports whether err says that nothing was sent.
func refused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// call is one call of a method of Store, which may send several requests.
type call struct {
	op, name string
	method   string
	path     string
	body     any
	// verb is what is done to the lock called name, in the place of a method and a path, and
	// request the body if there is no other. A batch can have the call if gathers is set: out is a
	// *httpapi.Grant or nil then.
	verb    string
	gathers bool
	request httpapi.Request
	out     any

	// ambiguous are the servers that may have received the request without an answer. They
	// include server, which answered, if it was asked again.
	ambiguous map[int]bool
	server    int
}

// others returns the servers that may still receive a request of c, or have executed it, but the
// one that answered: a server refuses earlier tries.
func (c *call) others() map[int]bool {
	others := maps.Clone(c.ambiguous)
	delete(others, c.server)
	return others
}

// A call asks each server up to rounds times. It asks a server whose connection breaks sameServer
// times in a row, since that server alone knows what became of the request. No request is sent
// once a call has taken longer than twice the timeout.
const (
	rounds     = 2
	sameServer = 7
)

// run sends the requests of c until a server answers.
func (s *engine) run(ctx context.Context, c *call) error {
	if err := s.gate.Enter(); err != nil {
		return err
	}
	defer s.gate.Leave()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !c.gathers {
		until, cancel := s.gate.Until(ctx)
		defer cancel()
		ctx = until
	}
	c.server = -1
	began := s.clock.Now()
	first := int(s.preferred.Load())
	var nodes []store.NodeOutcome
	for sent, i := 0, 0; i < rounds*len(s.servers); i++ {
		server := (first + i) % len(s.servers)
		for same := 0; same < sameServer; same++ {
			if sent > 0 && s.clock.Now().Sub(began) > 2*s.o.Timeout {
				return &store.QuorumError{Op: c.op, Name: c.name, Need: 1, Nodes: nodes}
			}
			if len(c.ambiguous) > 0 {
				c.request.Again = sent
			}
			sent++
			err := s.try(ctx, c, server)
			none := isUnanswered(err)
			if !none && !isClosing(err) {
				s.prefer(server)
				c.server = server
				return err
			}
			if nodes == nil {
				nodes = make([]store.NodeOutcome, len(s.servers))
			}
			nodes[server] = store.NodeOutcome{Node: s.hosts[server], Outcome: store.Unreachable, Err: err}
			if none && (ctx.Err() != nil || s.gate.Closed()) {
				nodes[server] = store.NodeOutcome{Node: s.hosts[server], Outcome: store.TimedOut}
				return s.over(ctx, c.op, c.name, nodes)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				nodes[server].Outcome = store.TimedOut
				break
			}
			if !none || refused(err) {
				break
			}
			if same < sameServer-1 && !clock.Sleep(ctx, time.Millisecond<<same) {
				return s.over(ctx, c.op, c.name, nodes)
			}
		}
		s.preferred.CompareAndSwap(int64(server), int64((server+1)%len(s.servers)))
		if (i+1)%len(s.servers) == 0 && !clock.Sleep(ctx, time.Duration(i+1)*10*time.Millisecond) {
			return s.over(ctx, c.op, c.name, nodes)
		}
	}
	return &store.QuorumError{Op: c.op, Name: c.name, Need: 1, Nodes: nodes}
}

// over returns the error of a call that ends since ctx or the store has ended. nodes has what became
// of the requests, with no address for a server that was not asked.
func (s *engine) over(ctx context.Context, op, name string, nodes []store.NodeOutcome) error {
	if s.gate.Closed() {
		return store.ErrClosed
	}
	nodes = slices.DeleteFunc(nodes, func(n store.NodeOutcome) bool { return n.Node == "" })
	if len(nodes) == 0 {
		return ctx.Err()
	}
	return fmt.Errorf("%w (%w)", ctx.Err(), &store.QuorumError{Op: op, Name: name, Need: 1, Nodes: nodes})
}

// unanswered says that a server gave no answer.
type unanswered struct{ err error }

func (e *unanswered) Error() string { return e.err.Error() }
func (e *unanswered) Unwrap() error { return e.err }

func isUnanswered(err error) bool { return err != nil && errors.As(err, new(*unanswered)) }

// isClosing reports whether err says that a server is about to end.
func isClosing(err error) bool {
	if err == nil {
		return false
	}
	p, ok := errors.AsType[*httpapi.Error](err)
	return ok && p.Problem.Kind() == httpapi.Closing
}

// try sends the request of c to one server, and reads its answer. It takes the timeout at most.
func (s *engine) try(ctx context.Context, c *call, server int) error {
	send := s.sendAlone
	if c.gathers {
		send = s.gatherers[server].send
	}
	problem, err := send(ctx, c, server)
	switch {
	case err != nil:
		if !refused(err) {
			if c.ambiguous == nil {
				c.ambiguous = map[int]bool{}
			}
			c.ambiguous[server] = true
		}
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = fmt.Errorf("no answer within %v: %w", s.o.Timeout, context.DeadlineExceeded)
		}
		return &unanswered{err}
	case problem != nil:
		return problem.Err(c.name)
	}
	return nil
}

// sendAlone sends c in a request of its own.
func (s *engine) sendAlone(ctx context.Context, c *call, server int) (*httpapi.Problem, error) {
	ctx, stop := context.WithTimeout(ctx, s.o.Timeout)
	defer stop()
	method, path, body := c.method, c.path, c.body
	if c.verb != "" {
		method, path = http.MethodPost, pathOf(c.name, "/"+c.verb)
		if body == nil {
			body = &c.request
		}
	}
	a, err := s.do(ctx, server, method, path, body, "application/json")
	if err != nil {
		return nil, err
	}
	if a.problem != nil {
		return a.problem, nil
	}
	defer a.body.Close()
	if c.out == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(a.body, 1<<16))
	} else {
		err = json.NewDecoder(io.LimitReader(a.body, maxAnswer)).Decode(c.out)
		io.Copy(io.Discard, io.LimitReader(a.body, 1<<16)) // so that the connection is used again
	}
	return nil, err
}

// undo takes back the attempt of l, which the call of that number made, in the background: at
// each server that may still receive it, or at any of them. It goes on until they have answered,
// for a TTL or a few seconds. It is called during a call.
func (s *engine) undo(l store.Lease, number string, servers map[int]bool) {
	if len(servers) == 0 {
		return
	}
	q := httpapi.RequestOf(l)
	q.Undo, q.Renewed, q.Call = true, true, number
	s.settleAt(l, q, servers)
}

// refuse tells servers to refuse late requests of a call that another server has answered.
func (s *engine) refuse(l store.Lease, number string, servers map[int]bool) {
	if len(servers) == 0 {
		return
	}
	q := httpapi.RequestOf(l)
	q.Refuse, q.Call = true, number
	s.settleAt(l, q, servers)
}

// settledLate is for how long releases are still sent once the store is closed.
const settledLate = 2 * time.Second

// settleAt sends the release q to servers until they have answered.
func (s *engine) settleAt(l store.Lease, q httpapi.Request, servers map[int]bool) {
	s.gate.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), min(max(l.TTL, time.Second), 10*time.Second))
		defer stop()
		closing, cancel := s.gate.Until(ctx)
		defer cancel()
		defer context.AfterFunc(closing, func() { time.AfterFunc(settledLate, stop) })()
		var last error
		left := maps.Clone(servers)
		for done, pause := q.Refuse, time.Millisecond; len(left) > 0 || !done; pause = min(2*pause, 250*time.Millisecond) {
			ask := left
			if len(left) == 0 { // they are gone: another one has to tell the store
				ask = map[int]bool{}
				for i := range s.servers {
					ask[i] = true
				}
			}
			for server := range maps.Clone(ask) {
				err := s.try(ctx, &call{op: "release", name: l.Name, verb: "release", request: q}, server)
				switch none := errors.As(err, new(*unanswered)); {
				case !none && (err == nil || errors.Is(err, store.ErrNotHeld)):
					done = true
					delete(left, server)
				case none && refused(err):
					delete(left, server) // it has ended, and with it what it had not read
				case err != nil:
					last = err
				}
			}
			if (len(left) > 0 || !done) && !clock.Sleep(ctx, pause) {
				s.o.Logger.Warn("a lock may stay taken for its TTL: an attempt could not be taken back", "lock", store.Excerpt(l.Name), "error", cmp.Or(last, ctx.Err()))
				return
			}
		}
	})
}
