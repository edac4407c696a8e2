package httpguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

// Memory remembers the largest accepted token of every resource. *sqlguard.Memory and
// *redisguard.Guard implement it. Its methods must be safe for concurrent use.
type Memory interface {
	// Highest returns the largest token that the resource remembers, or zero if there
	// is none. An error means that the token of a request cannot be checked.
	Highest(ctx context.Context, resource string) (fence.Token, error)
	// Admit applies the rule of package fence in one atomic step. It returns a
	// *fence.StaleError if token is smaller than the largest that the resource
	// remembers. Otherwise it remembers the token permanently and returns nil. Any
	// other error means that the token may not be remembered.
	Admit(ctx context.Context, resource string, token fence.Token) error
}

// Defaults of Options.
const (
	DefaultGrace             = 5 * time.Second
	DefaultLeap  fence.Token = 1 << 43
)

// Options configure a guard. Nil means the defaults.
type Options struct {
	// Memory remembers tokens across restarts, for all processes that serve a
	// resource. If it is nil, this process remembers them until it ends, and
	// keeps a few bytes for every resource that accepted a token.
	Memory Memory
	// Grace is how long a handler may go on while a request with a larger token waits.
	// After it the context of the handler's request ends and reading the body fails,
	// so that a holder that froze in the middle of an upload does not keep later
	// holders out. No request waits for longer than three times Grace. Zero means
	// DefaultGrace.
	Grace time.Duration
	// Leap is how far a token may be ahead of the largest that its resource has
	// accepted, or of this machine's clock in microseconds since 1970 if that is
	// larger. Tokens of Redis, files and databases follow the clock to within
	// seconds, those of etcd and ZooKeeper count. Zero means DefaultLeap, which is
	// 101 days in microseconds, or 1024 elections in ZooKeeper. fence.Max means no bound.
	Leap fence.Token
	// Logger logs errors of the Memory and tokens that leap too far; the client only
	// learns that its token was not checked. Nil means slog.Default().
	Logger *slog.Logger
}

// New returns a handler that passes a request to next only if its token is not
// smaller than the largest token that its resource has accepted. The package
// documentation lists the other answers. resource returns the name of what one
// lock protects, read from the request. The name must not be empty, and must be
// the same for every client.
//
// A request waits while handlers of other tokens run, until its context ends or for
// three times Options.Grace. The handler is safe for concurrent use if next and
// resource are.
func New(next http.Handler, resource func(*http.Request) string, o *Options) http.Handler {
	if next == nil || resource == nil {
		panic("httpguard: New needs a handler, and a function that names the resource of a request")
	}
	g := &guard{next: next, resource: resource}
	if o != nil {
		g.o = *o
	}
	if g.o.Grace <= 0 {
		g.o.Grace = DefaultGrace
	}
	if g.o.Leap == 0 {
		g.o.Leap = DefaultLeap
	}
	g.gate = gate{forget: g.o.Memory != nil, grace: g.o.Grace, resources: map[string]*entrance{}}
	return g
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
	if far, err := g.leaps(r.Context(), resource, token); err != nil {
		g.trouble(w, r, err)
		return
	} else if far {
		g.log(r, "a fencing token leaps too far: see httpguard.Options.Leap", "resource", resource, "token", token)
		http.Error(w, "header "+Header+": the token is too far ahead of those of earlier holders: it cannot be that of a lease", http.StatusBadRequest)
		return
	}
	g.serve(w, r, resource, token)
}

// leaps reports whether the token is further ahead than that of a lease can be.
func (g *guard) leaps(ctx context.Context, resource string, token fence.Token) (bool, error) {
	ahead := func(of fence.Token) bool { return token > of && token-of > g.o.Leap }
	if !ahead(fence.Token(max(0, time.Now().UnixMicro()))) || !ahead(g.gate.highest(resource)) {
		return false, nil
	}
	if g.o.Memory == nil {
		return true, nil
	}
	highest, err := g.o.Memory.Highest(ctx, resource)
	return ahead(highest), err
}

// serve passes a request to the handler when its turn comes.
func (g *guard) serve(w http.ResponseWriter, r *http.Request, resource string, token fence.Token) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	a := &answer{ResponseWriter: w, cancel: cancel}
	v := &visit{resource: resource, token: token, interrupt: a.interrupt}
	a.leave = func() { g.gate.leave(v) }
	a.accept = func() error { return g.accept(r, resource, token) }
	a.refuse = func(err error) {
		if !Refuse(w, err) {
			http.Error(w, "the request was executed, but its fencing token could not be remembered; repeat it with the same token", http.StatusServiceUnavailable)
		}
	}
	if err := g.gate.enter(r.Context(), v); err != nil {
		if !Refuse(w, err) {
			g.trouble(w, r, fmt.Errorf("%q: waiting for its turn: %w", resource, err))
		}
		return
	}
	defer a.returned()
	if g.o.Memory != nil {
		highest, err := g.o.Memory.Highest(r.Context(), resource)
		if err == nil {
			_, err = fence.Admit(resource, highest, token)
		}
		if err != nil {
			if !Refuse(w, err) {
				g.trouble(w, r, err)
			}
			return
		}
	}
	r = r.WithContext(WithToken(ctx, token))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = body{r.Body, ctx}
	}
	// A handler that returns without an answer sends 200. A handler that panics may have
	// written before.
	defer a.decide(http.StatusOK)
	g.next.ServeHTTP(a, r)
}

// rememberWithin bounds how long the Memory may take after the handler has decided.
const rememberWithin = 10 * time.Second

// accept remembers the token of a request that the handler has accepted. The request may
// be over by then.
func (g *guard) accept(r *http.Request, resource string, token fence.Token) error {
	var err error
	if g.o.Memory != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), rememberWithin)
		defer cancel()
		err = g.o.Memory.Admit(ctx, resource, token)
	}
	if stale, ok := errors.AsType[*fence.StaleError](err); ok {
		// Another process has accepted a later holder meanwhile.
		g.gate.accept(resource, stale.Highest, true)
		return err
	}
	g.gate.accept(resource, token, err == nil)
	if err != nil {
		g.log(r, "cannot remember fencing token of an accepted request", "resource", resource, "token", token, "err", err)
	}
	return err
}

// trouble answers a request whose token could not be checked. Details go only to
// the log: they may name servers that the client should not know.
func (g *guard) trouble(w http.ResponseWriter, r *http.Request, err error) {
	g.log(r, "cannot check fencing token", "err", err)
	http.Error(w, "the fencing token could not be checked, so nothing was done; try again", http.StatusServiceUnavailable)
}

func (g *guard) log(r *http.Request, text string, more ...any) {
	logger := g.o.Logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.WarnContext(r.Context(), text, append([]any{"method", r.Method, "path", r.URL.Path}, more...)...)
}

func parse(sent []string) (fence.Token, error) {
	if len(sent) > 1 {
		return 0, fmt.Errorf("%w: there are %d of them", fence.ErrInvalid, len(sent))
	}
	return fence.Parse(sent[0])
}
