package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

// Problem says why a call failed, as RFC 9457 asks for.
type Problem struct {
	// Type ends in one of the constants below, after a #.
	Type   string `json:"type,omitempty"`
	Title  string `json:"title,omitempty"`
	Status int    `json:"status,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Advice says what to do.
	Advice string `json:"advice,omitempty"`
	// The rest is the evidence; see store.BusyError, store.QuorumError and store.KindError.
	Holder    *statejson.Holder       `json:"holder,omitempty"`
	Expires   *statejson.Milliseconds `json:"expires_in_ms,omitempty"`
	Position  int                     `json:"position,omitempty"`
	Undecided bool                    `json:"undecided,omitempty"`
	Nodes     []statejson.Node        `json:"nodes,omitempty"`
	Op        string                  `json:"operation,omitempty"`
	Need      int                     `json:"need,omitempty"`
	Asked     *Kind                   `json:"asked,omitempty"`
	InUse     *Kind                   `json:"in_use,omitempty"`
	Ambiguous bool                    `json:"ambiguous,omitempty"`
}

// Kind is a kind of lock.
type Kind struct {
	Kind    string `json:"kind"`
	Permits int64  `json:"permits,omitempty"`
}

func kindOf(k store.Kind) *Kind {
	name, permits := kindName(k)
	if name == "" {
		name = "mutex"
	}
	return &Kind{name, permits}
}

func (k *Kind) store() store.Kind {
	if k == nil {
		return store.Kind{}
	}
	kind, _, _ := Request{Kind: k.Kind, Permits: k.Permits}.Claim()
	return kind
}

// The types of problems. Each is a heading of docs/serve.md.
const (
	Busy         = "busy"
	NotHeld      = "not-held"
	KindMismatch = "kind-mismatch"
	Invalid      = "invalid"
	Unsupported  = "unsupported"
	NoQuorum     = "no-quorum"
	Failed       = "store-failed"
	Late         = "too-late"
	Internal     = "server-failed"
	Closing      = "leaving"
	Unauthorized = "unauthorized"
	Forbidden    = "forbidden"
	CrossSite    = "cross-site"
	TooMany      = "too-many"
	TooLarge     = "too-large"
	NotFound     = "not-found"
	WrongMethod  = "wrong-method"
)

// typesAt is where the types are described.
const typesAt = "https://github.com/leasehold-dev/leasehold/blob/main/docs/serve.md#"

// about are the title, the status and the advice of each type.
var about = map[string]struct {
	title  string
	status int
	advice string
}{
	Busy:         {"The lock is held by another owner", http.StatusConflict, "try again later, wait with wait_ms, or ask the holder"},
	NotHeld:      {"The owner does not hold the lock", http.StatusConflict, "stop what the lock protects; to hold the lock again, acquire it with a new owner"},
	KindMismatch: {"The lock is in use as another kind", http.StatusConflict, "ask for the kind that is in use, or use another name"},
	Invalid:      {"The request is wrong", http.StatusBadRequest, "change the request; /v1/openapi.json describes it"},
	Unsupported:  {"The store cannot do that", http.StatusUnprocessableEntity, "do without it, or serve another store"},
	NoQuorum:     {"Too few servers of the store answer", http.StatusServiceUnavailable, "try again; if it lasts, ask \"leasehold doctor\" about the store"},
	Failed:       {"The store failed", http.StatusBadGateway, "try again with the same owner; if it lasts, ask \"leasehold doctor\" about the store"},
	Late:         {"The answer of the store came too late to be of use", http.StatusServiceUnavailable, "try again, with a longer ttl_ms if the store is slow"},
	Internal:     {"The server has a bug", http.StatusInternalServerError, "ask again with the same owner, and report the stack in the log of the server"},
	Closing:      {"The server is about to end", http.StatusServiceUnavailable, "send the request to another server of the same store"},
	Unauthorized: {"The client is not known", http.StatusUnauthorized, "send a token (Authorization: Bearer TOKEN) or a client certificate that the rights of the server name"},
	Forbidden:    {"The client may not do that", http.StatusForbidden, "have the operator of the server add the right for this name"},
	CrossSite:    {"Another site sent the request", http.StatusForbidden, "send it from the page of this server, or without a browser"},
	TooMany:      {"The client has reached a limit", http.StatusTooManyRequests, "ask less often or for fewer locks at a time, or have the operator of the server raise the limit"},
	TooLarge:     {"The request is too large", http.StatusRequestEntityTooLarge, "shorten it; the purpose and the name are the usual cause"},
	NotFound:     {"There is no such path", http.StatusNotFound, "the paths begin with /v1/locks/NAME; /v1/openapi.json lists them"},
	WrongMethod:  {"The path has no such method", http.StatusMethodNotAllowed, "look at locks with GET, and change them with POST"},
}

// Types returns all types.
func Types() (types []string) {
	for t := range about {
		types = append(types, t)
	}
	return types
}

// New returns a problem of one of the types.
func New(kind, detail string) *Problem {
	a := about[kind]
	return &Problem{Type: typesAt + kind, Title: a.title, Status: a.status, Detail: detail, Advice: a.advice}
}

// Kind returns the type without what comes before the #.
func (p *Problem) Kind() string { return p.Type[strings.LastIndexByte(p.Type, '#')+1:] }

// ProblemOf returns the problem that an error of a store or a client is.
func ProblemOf(err error) *Problem {
	var busy *store.BusyError
	var quorum *store.QuorumError
	var kind *store.KindError
	p := New(Failed, err.Error())
	switch {
	case errors.As(err, &busy):
		p = New(Busy, err.Error())
		holder, expires := statejson.HolderOf(busy.Holder), statejson.Milliseconds(busy.ExpiresIn)
		p.Holder, p.Expires, p.Position, p.Undecided, p.Nodes = &holder, &expires, busy.Position, busy.Undecided, statejson.NodesOf(busy.Nodes)
	case errors.As(err, &kind):
		p = New(KindMismatch, err.Error())
		holder := statejson.HolderOf(kind.Holder)
		p.Holder, p.Asked, p.InUse = &holder, kindOf(kind.Asked), kindOf(kind.InUse)
	case errors.Is(err, store.ErrNotHeld):
		p = New(NotHeld, err.Error())
	case errors.As(err, &quorum):
		p = New(NoQuorum, err.Error())
		p.Op, p.Need, p.Nodes = quorum.Op, quorum.Need, statejson.NodesOf(quorum.Nodes)
		if quorum.Is(store.ErrKindMismatch) {
			p.Title = "The name is in use for data that is not a lock"
		}
	case errors.Is(err, store.ErrInvalid):
		p = New(Invalid, err.Error())
	case errors.Is(err, store.ErrUnsupported):
		p = New(Unsupported, err.Error())
	case errors.Is(err, store.ErrKindMismatch):
		p = New(KindMismatch, err.Error())
	case errors.Is(err, store.ErrClosed):
		p = New(Closing, err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		p = New(Late, err.Error())
	}
	p.Ambiguous = quorum == nil && errors.Is(err, store.ErrAmbiguous)
	return p
}

// Err returns the error that p describes, about the lock called name: what ProblemOf was given,
// with texts in the place of errors that only the server knows.
func (p *Problem) Err(name string) error {
	var holder store.Holder
	if p.Holder != nil {
		holder = p.Holder.Store()
	}
	switch p.Kind() {
	case Busy:
		e := &store.BusyError{Name: name, Holder: holder, Position: p.Position, Undecided: p.Undecided, Nodes: statejson.Nodes(p.Nodes)}
		if p.Expires != nil {
			e.ExpiresIn = time.Duration(*p.Expires)
		}
		return e
	case KindMismatch:
		if p.InUse != nil {
			return &store.KindError{Name: name, Asked: p.Asked.store(), InUse: p.InUse.store().Normal(), Holder: holder}
		}
	case NoQuorum:
		return &store.QuorumError{Op: p.Op, Name: name, Need: max(p.Need, 1), Nodes: statejson.Nodes(p.Nodes)}
	}
	return &Error{*p}
}

// Error is a problem that has no error of its own in package store.
type Error struct{ Problem Problem }

func (e *Error) Error() string {
	if e.Problem.Detail != "" {
		return e.Problem.Detail
	}
	return e.Problem.Title
}

// Is reports whether e matches one of the errors of package store.
func (e *Error) Is(target error) bool {
	switch e.Problem.Kind() {
	case NotHeld:
		return target == store.ErrNotHeld
	case KindMismatch:
		return target == store.ErrKindMismatch
	case Invalid, TooLarge:
		return target == store.ErrInvalid
	case Unsupported:
		return target == store.ErrUnsupported
	}
	return target == store.ErrAmbiguous && e.Problem.Ambiguous
}
