package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/redisdoor"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
)

// Listening says where a server listens.
type Listening struct {
	// Address is a host and a port.
	Address string
	// Redis is where lock clients of Redis are served; empty: nowhere.
	Redis string
	// RedisClients is how many connections Redis takes at a time. Zero: 10,000.
	RedisClients int
	// Cert and Key are files; they are read again when they change. Without them the address has
	// to be on the loopback interface.
	Cert, Key string
	// ClientCA is a file with the authorities of the certificates of clients. Clients without a
	// certificate can still have a token.
	ClientCA string
	// Drain is how long requests may take once the server is to end.
	Drain time.Duration
}

// Listen opens the address. It fails if anybody in a network could then reach a server that knows
// neither TLS nor rights.
func (s *Server) Listen(o Listening) (net.Listener, error) {
	return s.listen(o, "--listen", o.Address, "h2", "http/1.1")
}

// ListenRedis opens o.Redis, and fails as Listen does.
func (s *Server) ListenRedis(o Listening) (net.Listener, error) {
	return s.listen(o, "--redis", o.Redis)
}

// listen opens an address that a flag gave. Over TLS, clients choose one of the protocols.
func (s *Server) listen(o Listening, flag, address string, protocols ...string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%s %q: give a host and a port, such as 127.0.0.1:7420: %w", flag, address, err)
	}
	ip := net.ParseIP(host)
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case !local && o.Cert == "":
		return nil, fmt.Errorf("%s %s can be reached from other machines: give --tls-cert and --tls-key, or listen on 127.0.0.1", flag, address)
	case !local && s.Rights == nil:
		return nil, fmt.Errorf("%s %s can be reached from other machines: say with --rights what clients may do, or listen on 127.0.0.1", flag, address)
	case (o.Cert == "") != (o.Key == ""):
		return nil, errors.New("--tls-cert and --tls-key go together")
	case o.ClientCA != "" && (o.Cert == "" || s.Rights == nil):
		return nil, errors.New("--client-ca needs --tls-cert, --tls-key and --rights")
	}
	lc := net.ListenConfig{Control: endsUnacknowledged, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	lc.SetMultipathTCP(false) // on such sockets Linux may not know the option of endsUnacknowledged
	l, err := lc.Listen(context.Background(), "tcp", address)
	if err != nil || o.Cert == "" {
		return l, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols}
	pair := &pair{cert: o.Cert, key: o.Key}
	if c.GetCertificate = pair.get; err == nil {
		_, err = pair.get(nil)
	}
	if err == nil && o.ClientCA != "" {
		var pem []byte
		if pem, err = os.ReadFile(o.ClientCA); err == nil {
			c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, x509.NewCertPool()
			if !c.ClientCAs.AppendCertsFromPEM(pem) {
				err = fmt.Errorf("--client-ca %s has no certificate in PEM", o.ClientCA)
			}
		}
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return tls.NewListener(watching{l}, c), nil
}

// pair is a certificate in files, which is read again when they change.
type pair struct {
	cert, key string

	mu     sync.Mutex
	looked time.Time
	seen   time.Time // when the files changed last
	now    *tls.Certificate
}

func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil && time.Since(p.looked) < time.Second {
		return p.now, nil
	}
	p.looked = time.Now()
	changed := time.Time{}
	for _, file := range []string{p.cert, p.key} {
		if info, err := os.Stat(file); err == nil && info.ModTime().After(changed) {
			changed = info.ModTime()
		}
	}
	if p.now != nil && changed.Equal(p.seen) {
		return p.now, nil
	}
	c, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		if p.now != nil { // it is being replaced
			return p.now, nil
		}
		return nil, err
	}
	p.now, p.seen = &c, changed
	return p.now, nil
}

// Serve answers requests at l until ctx ends. Then it leaves the leases of streams in the store,
// answers what it has begun for as long as o.Drain, and returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener, o Listening) error {
	if o.Cert == "" {
		l = watching{l}
	}
	srv := &http.Server{
		ConnContext:       withConn,
		Handler:           s,
		ReadHeaderTimeout: s.Patience,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    256 << 10, // so that a name that is far too long is answered
		Protocols:         &http.Protocols{},
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 1000, WriteByteTimeout: 3 * s.Patience},
		ErrorLog:          nil,
	}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(true)
	srv.Protocols.SetUnencryptedHTTP2(o.Cert == "")
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.Leave()
	drain, stop := context.WithTimeout(context.Background(), o.Drain)
	defer stop()
	if srv.Shutdown(drain) != nil {
		srv.Close()
	}
	<-ended
	return nil
}

// ServeRedis answers lock clients of Redis at l until ctx ends. Then it answers what it has
// begun for as long as o.Drain, and returns nil. Leases stay in the store.
func (s *Server) ServeRedis(ctx context.Context, l net.Listener, o Listening) error {
	door := redisdoor.New(redisdoor.Options{
		Store: s.Store, Log: s.Log, Rights: s.Rights, ReadOnly: s.ReadOnly, Patience: s.Patience, Connections: o.RedisClients,
		Allow: func(c *rights.Client, address string) bool {
			return c == nil || c.Limits.RequestsPerSecond <= 0 || s.limits.request(who(c, address), c.Limits.RequestsPerSecond, time.Now())
		},
	})
	return door.Serve(ctx, l, o.Drain)
}
