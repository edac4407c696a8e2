package httpguard

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/leasehold-dev/leasehold/fence"
)

// Transport is an http.RoundTripper that sends the token in the request's
// context: see WithToken. A request without one, or with the header set already,
// is sent as it is. The zero Transport is fine.
type Transport struct {
	// Base does the work. Nil: http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip sends the request. It is as safe for concurrent use as Base. The
// error matches fence.ErrInvalid, and nothing was sent, if the token is none.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, ok := TokenFrom(r.Context())
	if !ok || r.Header.Get(Header) != "" {
		return t.base().RoundTrip(r)
	}
	if err := token.Check(); err != nil {
		if r.Body != nil {
			r.Body.Close() // which a RoundTripper owes, whatever happens
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

// CloseIdleConnections does what it says, for http.Client.
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

// Check is a *fence.StaleError if the response is a guard's refusal, and nil for
// any other response, whatever its status. It leaves the body alone.
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
		stale.Offered, _ = fence.Parse(r.Request.Header.Get(Header)) // zero if it is not known
	}
	return stale
}

// Refuse answers with 409 and the larger token if err is, or wraps, a
// *fence.StaleError, and says whether it did: for handlers that hand the token on
// to what keeps the data.
func Refuse(w http.ResponseWriter, err error) bool {
	stale, ok := errors.AsType[*fence.StaleError](err)
	if ok {
		w.Header().Set(HighestHeader, stale.Highest.String())
		http.Error(w, stale.Error(), http.StatusConflict)
	}
	return ok
}
