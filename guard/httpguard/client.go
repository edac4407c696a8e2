package httpguard

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/leasehold-dev/leasehold/fence"
)

// Transport is an http.RoundTripper that sends the token of the request's
// context; see WithToken. A request without a token, or with the header already
// set, is sent unchanged. The zero value is ready to use.
type Transport struct {
	// Base sends the requests. Nil means http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip implements http.RoundTripper. It is safe for concurrent use if Base
// is. If the token is invalid, the error matches fence.ErrInvalid and nothing was
// sent.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, ok := TokenFrom(r.Context())
	if !ok || r.Header.Get(Header) != "" {
		return t.base().RoundTrip(r)
	}
	if err := token.Check(); err != nil {
		if r.Body != nil {
			r.Body.Close() // a RoundTripper must, even on errors
		}
		return nil, fmt.Errorf("httpguard: %w", err)
	}
	r = r.Clone(r.Context())
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(Header, token.String())
	return t.base().RoundTrip(r)
}

// CloseIdleConnections closes the idle connections of Base, if Base can.
// http.Client calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// Check returns a *fence.StaleError if a guard refused the request because of its
// token, and nil for any other response, whatever its status. It does not read
// the body.
func Check(r *http.Response) error {
	if r.StatusCode != http.StatusConflict {
		return nil
	}
	highest, err := fence.Parse(r.Header.Get(HighestHeader))
	if err != nil {
		return nil // a conflict of another kind
	}
	stale := &fence.StaleError{Resource: "an HTTP server", Highest: highest}
	if r.Request != nil {
		where := *r.Request.URL
		where.RawQuery, where.User = "", nil // may hold secrets
		stale.Resource = r.Request.Method + " " + where.String()
		stale.Offered, _ = fence.Parse(r.Request.Header.Get(Header)) // zero if unknown
	}
	return stale
}

// Refuse answers with 409 Conflict and the larger token if err is or wraps a
// *fence.StaleError, and reports whether it did. It is meant for handlers that
// pass the token on to a guarded store.
func Refuse(w http.ResponseWriter, err error) bool {
	stale, ok := errors.AsType[*fence.StaleError](err)
	if ok {
		w.Header().Set(HighestHeader, stale.Highest.String())
		http.Error(w, stale.Error(), http.StatusConflict)
	}
	return ok
}
