package serve

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/store"
)

// admit returns r with its client, or why it is not answered.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (*http.Request, *httpapi.Problem) {
	if s.Patience > 0 {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(3 * s.Patience))
	}
	if !s.isOurHost(r.Host) {
		return r, httpapi.New(httpapi.CrossSite, "the Host header names another host than this server: use localhost, or start the server with --host "+store.Excerpt(hostOf(r.Host)))
	}
	if err := s.cross.Check(r); err != nil {
		s.audit(r, "refused a request of another site", "", slog.String("origin", store.Excerpt(r.Header.Get("Origin"))))
		return r, httpapi.New(httpapi.CrossSite, "the request changes something, and comes from another site: "+err.Error())
	}
	client := rights.Anyone(s.ReadOnly)
	if s.Rights != nil {
		if client = s.Rights.Client(r); client == nil {
			s.audit(r, "refused an unknown client", "")
			return r, httpapi.New(httpapi.Unauthorized, "the request has neither a token nor a certificate that the rights of this server name")
		}
		if s.ReadOnly {
			client = client.ReadOnly()
		}
	}
	if !s.limits.request(who(client, addressOf(r)), client.Limits.RequestsPerSecond, time.Now()) {
		return r, httpapi.New(httpapi.TooMany, "too many requests in a second")
	}
	ctx := rights.With(r.Context(), client)
	if trace := r.Header.Get("Traceparent"); trace != "" {
		ctx = context.WithValue(ctx, traceKey{}, trace)
	}
	return r.WithContext(ctx), nil
}

// who returns the name under which the limits count the client: its own, or its address if it has none.
func who(c *rights.Client, address string) string {
	if c.Name != "" {
		return "n " + c.Name
	}
	return "a " + address
}

// addressOf returns the address of the peer, without the port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// hostOf returns a Host header without its port.
func hostOf(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}

// isOurHost reports whether a request for host is meant for this server.
func (s *Server) isOurHost(host string) bool {
	if len(s.Hosts) == 0 {
		return true
	}
	host = strings.ToLower(hostOf(host))
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback() || slices.Contains(s.Hosts, host)
}

// forbid returns the error of a client that lacks a right, and notes it.
func (s *Server) forbid(r *http.Request, right rights.Right, name string) error {
	s.audit(r, "refused a right", name, slog.String("right", right.String()))
	return refuse(httpapi.Forbidden, "this client has no right to "+right.String()+" here")
}

// check returns an error unless the client of r has the right.
func (s *Server) check(r *http.Request, right rights.Right, name string) error {
	if rights.Of(r.Context()).May(right, name) {
		return nil
	}
	return s.forbid(r, right, name)
}

// audit notes what was done or refused.
func (s *Server) audit(r *http.Request, what, name string, more ...slog.Attr) {
	attrs := []slog.Attr{slog.Bool("audit", true), slog.String("client", rights.Of(r.Context()).Name), slog.String("address", addressOf(r)), slog.String("method", r.Method), slog.String("path", store.Excerpt(r.URL.EscapedPath()))}
	if name != "" {
		attrs = append(attrs, slog.String("lock", store.Excerpt(name)))
	}
	s.Log.LogAttrs(r.Context(), slog.LevelWarn, what, append(attrs, more...)...)
}
