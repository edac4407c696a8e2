// Package door stands in front of an HTTP server of a test. It counts requests, and can answer
// them itself and lose answers.
package door

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// Door is a server in front of another one. Its methods are safe for concurrent use.
type Door struct {
	*httptest.Server
	inner  http.Handler
	mu     sync.Mutex
	counts map[string]int // by method
	answer atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]
	lose   atomic.Pointer[func(r *http.Request) bool]
}

// Open opens a door in front of a handler, and closes it with the test.
func Open(t testing.TB, inner http.Handler) *Door {
	d := &Door{inner: inner, counts: map[string]int{}}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

// To returns a handler that passes requests on to the server at a URL.
func To(t testing.TB, server string) http.Handler {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			p.Out.Host = p.In.Host // which may be signed
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}

// ServeHTTP implements http.Handler.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	d.counts[r.Method]++
	d.mu.Unlock()
	if answer := d.answer.Load(); answer != nil && (*answer)(w, r) {
		return
	}
	if lose := d.lose.Load(); lose != nil && (*lose)(r) {
		d.inner.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	d.inner.ServeHTTP(w, r)
}

// Answer has f see each request from now on, before the server does. If it returns true, it has
// answered.
func (d *Door) Answer(f func(w http.ResponseWriter, r *http.Request) bool) { d.answer.Store(&f) }

// Lose has the connection cut after the server has carried out a request for which f returns true.
func (d *Door) Lose(f func(r *http.Request) bool) { d.lose.Store(&f) }

// Taken returns how many requests of each method there were since it was called last.
func (d *Door) Taken() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.counts
	d.counts = map[string]int{}
	return c
}

// Once returns a function that returns true the first time that which does, and then false.
func Once(which func(*http.Request) bool) func(*http.Request) bool {
	var done atomic.Bool
	return func(r *http.Request) bool { return which(r) && done.CompareAndSwap(false, true) }
}
