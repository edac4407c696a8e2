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
// *redisguard.Guard do.
type Memory interface {
	// Admit applies the rule of package fence in one atomic step: it refuses a
	// token smaller than the largest it has seen with a *fence.StaleError, or
	// remembers it, for good, and returns nil. Any other error means that the
	// token was not judged. It must be safe for concurrent use.
	Admit(ctx context.Context, resource string, token fence.Token) error
}

// Options for a guard. Nil is fine.
type Options struct {
	// Memory remembers tokens over restarts and between the processes that serve
	// a resource. Nil: this process remembers, until it ends, and keeps a few
	// bytes for every resource there ever was.
	Memory Memory
	// Logger is told when the Memory fails; the client only learns that the
	// request could not be judged. Nil: slog.Default().
	Logger *slog.Logger
}

// New guards a handler: a request is handed on only with a token that is not
// smaller than the largest its resource has seen. What is answered otherwise
// is in the documentation of the package. The resource is the name of what one
// lock protects, read from the request, whoever sent it; it must not be empty.
//
// A request waits while handlers of smaller tokens run, until its context ends.
// The handler is safe for concurrent use if next is.
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

// trouble answers a request that could not be judged. Details are for the log:
// they may name servers that are none of the client's business.
func (g *guard) trouble(w http.ResponseWriter, r *http.Request, err error) {
	logger := g.o.Logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.WarnContext(r.Context(), "fencing token could not be judged", "method", r.Method, "path", r.URL.Path, "err", err)
	http.Error(w, "the fencing token could not be judged, so nothing was done; try again", http.StatusServiceUnavailable)
}

func parse(sent []string) (fence.Token, error) {
	if len(sent) > 1 {
		return 0, fmt.Errorf("%w: there are %d of them", fence.ErrInvalid, len(sent))
	}
	return fence.Parse(sent[0])
}
