// Package serve is the server of "leasehold serve": the locks of a store over HTTP. It keeps
// no locks itself: leases live in the store, and another server of the same store goes on
// with them.
package serve

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/store"
)

// Options configure a Server. Store is needed.
type Options struct {
	// Store keeps the locks.
	Store *store.Store
	// Log receives the audit and what an operator should know. Nil: nothing is logged.
	Log *slog.Logger
	// Rights says what clients may do. Nil: all may do everything, or only look if ReadOnly is
	// set.
	Rights *rights.File
	// ReadOnly refuses everything that changes a lock.
	ReadOnly bool
	// Hosts, if not empty, are the only values of the Host header that are answered, without
	// ports, besides localhost and loopback addresses. They keep other sites, whose names
	// somebody lets point here, away from a server that does not ask for tokens.
	Hosts []string
	// Prefix is the path below which everything lies, such as "/locks"; empty: none.
	Prefix string
	// Heartbeat is the longest silence on a stream. Zero: 10 seconds.
	Heartbeat time.Duration
	// Patience is how long a client may take to send the body of a request, or to read what was
	// written. Zero: 10 seconds.
	Patience time.Duration
	// TerraformState is the folder that keeps states of Terraform. Empty: none is kept, and only
	// their locks are. Fleets are the groups of FleetLock, by their names.
	TerraformState string
	Fleets         map[string]Fleet
	// Page answers all paths that are not the API's, Events answers GET /v1/events, and
	// Observe answers /metrics, /healthz and /readyz. The context of a request has the client:
	// see rights.Of. Nil: there is none.
	Page, Events, Observe http.Handler
}

// Server answers requests. It is safe for concurrent use.
type Server struct {
	Options
	client  *leasehold.Client
	clock   clock.Clock
	cross   *http.CrossOriginProtection
	limits  limits
	tries   tries
	states  *states
	atOnce  bool // the store is in this process: it has nothing to wait for
	leaving context.Context
	leave   context.CancelFunc
}

// New returns a server. It sends nothing to the store.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 10 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	s := &Server{Options: o, clock: clock.System(), cross: http.NewCrossOriginProtection(), states: newStates(o.TerraformState)}
	s.client = leasehold.New(o.Store, &leasehold.Options{Logger: o.Log, Trace: traceOf})
	s.leaving, s.leave = context.WithCancel(context.Background())
	s.atOnce = o.Store.Caps().Reach == "process"
	return s
}

// Leave has the server end all streams: it tells their clients to go on at another server, and
// leaves their leases in the store. It refuses new streams from now on, and does not block.
func (s *Server) Leave() { s.leave() }

//go:embed openapi.json
var openAPI json.RawMessage

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set(httpapi.ClassHeader, s.Store.Caps().Class.String())
	if len(r.TransferEncoding) > 0 {
		// If the request has a length, too, a proxy before us may take what follows for its body.
		h.Set("Connection", "close")
	}
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), s.Prefix)
	if !ok || !strings.HasPrefix(path, "/") {
		s.fail(w, r, httpapi.New(httpapi.NotFound, "this server answers below "+s.Prefix+"/"))
		return
	}
	if path == "/healthz" || path == "/readyz" { // asked by machines that know no token; they tell nothing of locks
		if s.Observe != nil {
			http.StripPrefix(s.Prefix, s.Observe).ServeHTTP(w, r)
			return
		}
	}
	r, refused := s.admit(w, r)
	if refused != nil {
		s.fail(w, r, refused)
		return
	}
	switch rest, isLock := strings.CutPrefix(path, "/v1/locks/"); {
	case isLock:
		s.reply(w, r, s.lock, rest)
	case strings.HasPrefix(path, "/terraform/"):
		s.terraform(w, r, path[len("/terraform/"):])
	case path == "/fleetlock/v1/pre-reboot", path == "/fleetlock/v1/steady-state":
		s.fleetLock(w, r, path[len("/fleetlock/v1/"):])
	case path == "/v1/locks":
		s.reply(w, r, get(s.list), "")
	case path == "/v1/renew":
		s.reply(w, r, s.renewAll, "")
	case path == "/v1/batch":
		s.batch(w, r)
	case path == "/v1/store":
		s.reply(w, r, get(func(*http.Request, string) (any, error) { return httpapi.CapsOf(s.Store), nil }), "")
	case path == "/v1/openapi.json":
		s.reply(w, r, get(func(*http.Request, string) (any, error) { return openAPI, nil }), "")
	case path == "/v1/events" && s.Events != nil:
		s.Events.ServeHTTP(w, r)
	case path == "/metrics" && s.Observe != nil:
		if err := s.check(r, rights.Look, ""); err != nil {
			s.failWith(w, r, err)
			return
		}
		http.StripPrefix(s.Prefix, s.Observe).ServeHTTP(w, r)
	case s.Page != nil && !strings.HasPrefix(path, "/v1/"):
		http.StripPrefix(s.Prefix, s.Page).ServeHTTP(w, r)
	default:
		s.fail(w, r, httpapi.New(httpapi.NotFound, "there is nothing at "+store.Excerpt(path)))
	}
}

// A handler does what a request asks for, and returns the answer. about is the lock, or what else the path
// says.
type handler func(w http.ResponseWriter, r *http.Request, about string) (any, error)

// noContent is the answer of a call that says no more, and answered that of a handler that has answered
// itself.
const (
	noContent special = iota
	answered
)

type special int

// reply answers with what h returns.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, h handler, about string) {
	switch v, err := h(w, r, about); {
	case err != nil:
		s.failWith(w, r, err)
	case v == noContent:
		w.WriteHeader(http.StatusNoContent)
	case v != answered:
		answer(w, v)
	}
}

// get returns a handler of GET and HEAD.
func get(h func(r *http.Request, about string) (any, error)) handler {
	return func(w http.ResponseWriter, r *http.Request, about string) (any, error) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return nil, wrongMethod(w, "GET, HEAD")
		}
		return h(r, about)
	}
}

func wrongMethod(w http.ResponseWriter, allowed string) error {
	w.Header().Set("Allow", allowed)
	return refuse(httpapi.WrongMethod, "this path is for "+allowed)
}

// refusal is the error of a request that the server refuses by itself. One of another server, behind a
// store over HTTP, is no refusal: it is about this server.
type refusal struct{ error *httpapi.Error }

func (e refusal) Error() string { return e.error.Error() }
func (e refusal) Unwrap() error { return e.error }

func refuse(kind, detail string) error {
	return refusal{&httpapi.Error{Problem: *httpapi.New(kind, detail)}}
}

func invalid(what string) error { return refuse(httpapi.Invalid, what) }

// problemOf returns the problem that err is.
func problemOf(err error) *httpapi.Problem {
	if own, ok := errors.AsType[refusal](err); ok {
		return &own.error.Problem
	}
	return httpapi.ProblemOf(err)
}

// fail answers with a problem, in the form that the client knows.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, p *httpapi.Problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	switch p.Kind() {
	case httpapi.Unauthorized:
		h.Add("WWW-Authenticate", `Bearer realm="leasehold"`)
		h.Add("WWW-Authenticate", `Basic realm="leasehold: any name, and a token as the password", charset="UTF-8"`) // for browsers
	case httpapi.TooMany, httpapi.NoQuorum, httpapi.Closing:
		h.Set("Retry-After", "1")
	}
	if strings.HasPrefix(r.URL.EscapedPath(), s.Prefix+"/fleetlock/") {
		s.refuseFleet(w, r, p.Status, p.Kind(), p.Detail)
		return
	}
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p)
}

// failWith answers with the problem that err is.
func (s *Server) failWith(w http.ResponseWriter, r *http.Request, err error) {
	s.fail(w, r, problemOf(err))
}

// answer answers with v.
func answer(w http.ResponseWriter, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	json.NewEncoder(w).Encode(v)
}

type traceKey struct{}

// traceOf returns the trace of the request that ctx belongs to.
func traceOf(ctx context.Context) string {
	trace, _ := ctx.Value(traceKey{}).(string)
	return trace
}
