// Package serve is the server of "leasehold serve": the locks of a store over HTTP. It keeps
// no locks itself: leases live in the store, and another server of the same store goes on
// with them.
package serve

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

// Options configure a Server. Store and Client are needed.
type Options struct {
	// Store keeps the locks, and Client asks it.
	Store  store.Store
	Client *leasehold.Client
	// Log receives the audit and what an operator should know. Nil: nothing is logged.
	Log *slog.Logger
	// ReadOnly refuses everything that changes a lock.
	ReadOnly bool
	// Prefix is the path below which everything lies, such as "/locks"; empty: none.
	Prefix string
	// Page answers all paths that are not the API's, Events answers GET /v1/events, and
	// Observe answers /metrics, /healthz and /readyz. The context of a request has the client:
	// see rights.Of. Nil: there is none.
	Page, Events, Observe http.Handler
}

// Server answers requests. It is safe for concurrent use.
type Server struct {
	Options
}

// New returns a server. It sends nothing to the store.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{Options: o}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(rights.With(r.Context(), rights.Anyone(s.ReadOnly)))
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), s.Prefix)
	if !ok {
		http.NotFound(w, r)
		return
	}
	switch rest, isLock := strings.CutPrefix(path, "/v1/locks/"); {
	case isLock:
		s.lock(w, r, rest)
	case path == "/v1/locks":
		s.list(w, r)
	case path == "/v1/events" && s.Events != nil:
		s.Events.ServeHTTP(w, r)
	case (path == "/metrics" || path == "/healthz" || path == "/readyz") && s.Observe != nil:
		http.StripPrefix(s.Prefix, s.Observe).ServeHTTP(w, r)
	case s.Page != nil && !strings.HasPrefix(path, "/v1/"):
		http.StripPrefix(s.Prefix, s.Page).ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// lock answers a request about one lock.
func (s *Server) lock(w http.ResponseWriter, r *http.Request, path string) {
	name, err := url.PathUnescape(path)
	if err != nil || !rights.Of(r.Context()).May(rights.Look, name) {
		http.NotFound(w, r)
		return
	}
	st, err := s.Store.Inspect(r.Context(), name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, http.StatusOK, statejson.Of(st))
}

// list answers GET /v1/locks.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	all, err := s.Store.List(r.Context(), r.URL.Query().Get("prefix"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	locks := []statejson.State{}
	for _, st := range all {
		if rights.Of(r.Context()).May(rights.Look, st.Name) {
			locks = append(locks, statejson.Of(st))
		}
	}
	answer(w, http.StatusOK, map[string]any{"locks": locks})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}
