package httpguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/leasehold-dev/leasehold/fence"
)

// Memory remembers the largest token of every resource. *sqlguard.Memory and
// *redisguard.Guard implement it.
type Memory interface {
	// Admit applies the rule of package fence in one atomic step. It returns a
	// *fence.StaleError if token is smaller than the largest that the resource
	// has seen. Otherwise it remembers the token permanently and returns nil. Any
	// other error means that the token was not checked. Admit must be safe for
	// concurrent use.
	Admit(ctx context.Context, resource string, token fence.Token) error
}

// Options configure a guard. Nil means the defaults.
type Options struct {
	// Memory remembers tokens across restarts, for all processes that serve a
	// resource. If it is nil, this process remembers them until it ends, and
	// keeps a few bytes for every resource ever used.
	Memory Memory
	// Logger logs errors of the Memory; the client only learns that its token
	// could not be checked. Nil means slog.Default().
	Logger *slog.Logger
}

// New returns a handler that passes a request to next only if its token is not
// smaller than the largest token that its resource has seen. The package
// documentation lists the other answers. resource returns the name of what one
// lock protects, read from the request. The name must not be empty, and must be
// the same for every client.
//
// A request waits while handlers of smaller tokens run, until its context ends.
// The handler is safe for concurrent use if next and resource are.
func New(next http.Handler, resource func(*http.Request) string, o *Options) http.Handler {
	if next == nil || resource == nil {
		panic("httpguard: New needs a handler, and a function that names the resource of a request")
	}
	if o == nil {
		o = &Options{}
	}
	return &guard{next: next, resource: resource, o: *o, gate: gate{forget: o.Memory != nil, resources: map[string]*entrance{}}}
}

type guard struct {
	next     http.Handler
	resource func(*http.Request) string
	o        Options
	gate     gate
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent := r.Header.Values(Header)
	if len(sent) == 0 {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
			g.next.ServeHTTP(w, r)
		default:
			http.Error(w, "the header "+Header+" is missing: send the fencing token of your lease", http.StatusPreconditionRequired)
		}
		return
	}
	token, err := parse(sent)
	if err != nil {
		http.Error(w, "header "+Header+": "+err.Error(), http.StatusBadRequest)
		return
	}
	resource := g.resource(r)
	if resource == "" {
		g.trouble(w, r, errors.New("the request names no resource"))
		return
	}
	if err := g.gate.enter(r.Context(), resource, token); err != nil {
		if !Refuse(w, err) {
			g.trouble(w, r, fmt.Errorf("%q: waiting for handlers of smaller tokens: %w", resource, err))
		}
		return
	}
	defer g.gate.leave(resource)
	if g.o.Memory != nil {
		if err := g.o.Memory.Admit(r.Context(), resource, token); err != nil {
			if !Refuse(w, err) {
				g.trouble(w, r, err)
			}
			return
		}
	}
	g.next.ServeHTTP(w, r.WithContext(WithToken(r.Context(), token)))
}

// trouble answers a request whose token could not be checked. Details go only to
// the log: they may name servers that the client should not know.
func (g *guard) trouble(w http.ResponseWriter, r *http.Request, err error) {
	logger := g.o.Logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.WarnContext(r.Context(), "cannot check fencing token", "method", r.Method, "path", r.URL.Path, "err", err)
	http.Error(w, "the fencing token could not be checked, so nothing was done; try again", http.StatusServiceUnavailable)
}

func parse(sent []string) (fence.Token, error) {
	if len(sent) > 1 {
		return 0, fmt.Errorf("%w: there are %d of them", fence.ErrInvalid, len(sent))
	}
	return fence.Parse(sent[0])
}
