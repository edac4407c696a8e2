package natsstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Options configure a store. The zero value and nil are good defaults. What is set both here
// and in the URL must have the same value in both.
type Options struct {
	// Bucket names the stream, in letters, digits, - and _. Empty means "default".
	Bucket string
	// Replicas is how many servers keep the stream if Open makes it: 1, 3 or 5. Zero means 3 in a
	// cluster, and 1 on a server alone.
	Replicas int
	// Synced says that every server has sync_interval: always, so that a write that was
	// acknowledged outlives a crash.
	Synced bool
	// Monitors has the URLs of the servers' monitoring ports, such as http://10.0.0.1:8222. Examine
	// reads there whether each of them syncs every write. Locks do without them.
	Monitors []string
	// Skew is how far apart the clocks of two servers, or of one that was set, can be. A client
	// that finds the lock of a dead holder waits for the rest of its TTL and Skew at most.
	// Zero means a minute.
	Skew time.Duration
	// Timeout bounds each step, including the time in which a cluster elects a leader. Zero
	// means 5 s.
	Timeout time.Duration
	// User and Password, or Token, or CredentialsFile log in. A user without a password has that
	// of NATS_PASSWORD.
	User, Password, Token, CredentialsFile string
	// TLS is used if it is not nil, or if the URL has tls=true; the files of the URL are added.
	TLS *tls.Config
	// Logger is told of trouble that no caller learns of. Nil means none.
	Logger *slog.Logger
}

var bucketForm = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// checked returns o with its defaults.
func (o Options) checked() (Options, error) {
	c := o
	c.Bucket = cmp.Or(c.Bucket, "default")
	c.Skew, c.Timeout = cmp.Or(c.Skew, time.Minute), cmp.Or(c.Timeout, 5*time.Second)
	switch {
	case len(c.Bucket) > 64 || !bucketForm.MatchString(c.Bucket):
		return c, fmt.Errorf("%w: bucket %q: use up to 64 letters, digits, - and _", store.ErrInvalid, store.Excerpt(c.Bucket))
	case c.Replicas < 0 || c.Replicas > 5:
		return c, fmt.Errorf("%w: %d replicas: use 1, 3 or 5", store.ErrInvalid, c.Replicas)
	case c.Skew < 0 || c.Timeout < 0:
		return c, fmt.Errorf("%w: skew and timeout cannot be negative", store.ErrInvalid)
	}
	for _, m := range c.Monitors {
		if u, err := url.Parse(m); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
			return c, fmt.Errorf("%w: the URL of a monitoring port has the form http://HOST:8222", store.ErrInvalid)
		}
	}
	return c, nil
}

// Open connects to the servers that a URL names, and opens the stream:
//
//	nats://USER:PASSWORD@HOST:PORT,HOST:PORT,HOST:PORT/BUCKET?sync=always
//	nats://HOST/BUCKET?tls=true&ca=/etc/ssl/ca.pem&creds=/etc/app/nats.creds
//
// The default port is 4222 and the default bucket "default". replicas, sync, skew and timeout
// are those of Options, and monitor has Options.Monitors, separated by commas. With tls=true, ca
// names a file with the certificates to trust instead of the system's, and cert and key those
// of the client, which are read at each connection. A URL whose user is empty and that has a
// password logs in with that as its token. A nil o means the defaults. The error matches
// store.ErrInvalid if the URL or the options are wrong, and contains no password.
//
// Open makes the stream if there is none, and refuses one that was made for something else. It
// blocks for Options.Timeout at most. The store is safe for concurrent use, and closes the
// connection when it is closed.
func Open(ctx context.Context, url string, o *Options) (*store.Store, error) {
	servers, c, err := parseURL(url, o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	d, err := connect(ctx, servers, c)
	if err != nil {
		return nil, &store.QuorumError{Op: "open", Store: "nats", Need: 1, Nodes: []store.NodeOutcome{{Node: strings.Join(servers, ","), Outcome: outcomeOf(err), Err: err}}}
	}
	return recordstore.New(d, &recordstore.Options{Timeout: c.Timeout, Logger: c.Logger}), nil
}

func outcomeOf(err error) store.Outcome {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return store.TimedOut
	case errors.Is(err, nats.ErrNoServers):
		return store.Unreachable
	}
	return store.Refused
}

func connect(ctx context.Context, servers []string, o Options) (*driver, error) {
	d := &driver{o: o, prefix: "leasehold." + o.Bucket + "."}
	options := []nats.Option{
		nats.DisconnectErrHandler(func(*nats.Conn, error) { d.pulse.disconnected() }),
		nats.Name("leasehold"), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), nats.Timeout(o.Timeout),
		// Requests that were kept until there is a connection again would arrive late.
		nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if o.Logger != nil {
				o.Logger.Warn("NATS reports an error", "err", err)
			}
		}),
	}
	switch {
	case o.CredentialsFile != "":
		options = append(options, nats.UserCredentials(o.CredentialsFile))
	case o.Token != "":
		options = append(options, nats.Token(o.Token))
	case o.User != "":
		options = append(options, nats.UserInfo(o.User, o.Password))
	}
	if o.TLS != nil {
		options = append(options, nats.Secure(o.TLS))
	}
	conn, err := nats.Connect(strings.Join(servers, ","), options...)
	if err != nil {
		return nil, err
	}
	d.conn = conn
	if d.js, err = jetstream.New(conn); err == nil {
		err = d.openStream(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return d, nil
}

// openStream opens the stream of the bucket, or makes it.
func (d *driver) openStream(ctx context.Context) error {
	name := "LEASEHOLD_" + d.o.Bucket
	for {
		s, err := d.findStream(ctx, name)
		if err == nil {
			d.stream, d.replicas = s, s.CachedInfo().Config.Replicas
			return unfit(s.CachedInfo().Config, d.prefix)
		}
		// A cluster that begins, or elects a leader, answers again soon.
		api := (*jetstream.APIError)(nil)
		refused := errors.As(err, &api)
		few := refused && api.ErrorCode == noPeers
		if few {
			err = fmt.Errorf("%w: start as many servers, or say replicas=1", err)
		}
		if refused && !few && api.Code != 503 || !clock.Sleep(ctx, 100*time.Millisecond) {
			return fmt.Errorf("stream %s: %w", name, err)
		}
	}
}

// noPeers is the code of a cluster that has fewer servers than the stream should have replicas.
const noPeers jetstream.ErrorCode = 10005

// findStream makes one attempt.
func (d *driver) findStream(ctx context.Context, name string) (s jetstream.Stream, err error) {
	err = d.request(ctx, func(ctx context.Context) error {
		if s, err = d.js.Stream(ctx, name); errors.Is(err, jetstream.ErrStreamNotFound) {
			s, err = d.makeStream(ctx, name)
		}
		return err
	})
	return s, err
}

// makeStream makes the stream.
func (d *driver) makeStream(ctx context.Context, name string) (jetstream.Stream, error) {
	replicas := 3
	if d.conn.ConnectedClusterName() == "" {
		replicas = 1
	}
	return d.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name, Description: "locks of leasehold", Subjects: []string{d.prefix + ">"}, MaxMsgsPerSubject: 1,
		Storage: jetstream.FileStorage, Replicas: cmp.Or(d.o.Replicas, replicas), Discard: jetstream.DiscardNew, AllowMsgTTL: true, DenyDelete: true, DenyPurge: true,
	})
}

// unfit returns why a stream cannot keep locks, or nil.
func unfit(c jetstream.StreamConfig, prefix string) error {
	switch {
	case len(c.Subjects) != 1 || c.Subjects[0] != prefix+">" || c.MaxMsgsPerSubject != 1:
		return recordstore.Refusal("stream %s was made for something else: use another bucket", c.Name)
	case c.AllowDirect:
		return recordstore.Refusal("stream %s allows direct gets, which replicas that are behind can answer: set allow_direct to false", c.Name)
	case c.Storage != jetstream.FileStorage:
		return recordstore.Refusal("stream %s is kept in memory, and forgets locks with its server", c.Name)
	case c.MaxAge != 0 || c.MaxMsgs > 0 || c.MaxBytes > 0 && c.Discard != jetstream.DiscardNew:
		return recordstore.Refusal("stream %s has limits that delete the oldest locks: remove max_age and max_msgs", c.Name)
	case c.Mirror != nil || len(c.Sources) > 0:
		return recordstore.Refusal("stream %s is a copy of another one", c.Name)
	case c.PersistMode != jetstream.DefaultPersistMode:
		return recordstore.Refusal("stream %s acknowledges locks before they are written, whatever the servers sync: set persist_mode to default", c.Name)
	case !c.AllowMsgTTL:
		return recordstore.Refusal("stream %s does not allow a TTL for each message, so it would keep every lock there ever was: set allow_msg_ttl, which needs NATS 2.11", c.Name)
	}
	return nil
}
