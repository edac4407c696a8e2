package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/observe"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/page"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/filestore"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	serve.Options
	at     serve.Listening
	rights string
	hosts  []string
	trace  string
	fleets []string
}

func serveCommand(p *program) *cobra.Command {
	o := serveFlags{at: serve.Listening{Address: "127.0.0.1:7420", Drain: 10 * time.Second}}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the locks of a store over HTTP, and a page to see them",
		Long: `Serves the locks of the store over HTTP, for programs in any language and for curl, and a
page that shows them. docs/serve.md describes the calls, /v1/openapi.json for programs.

The server keeps no locks itself. Several servers can serve one store, and a lease outlives
the server that it was acquired from. Asked to end, the server tells the holders that are
connected for how long their leases last, so that they can go on at another server.
--store memory: keeps locks in this process alone, and forgets them when it ends.
--redis serves the same locks to lock clients of Redis, for which it is a Redis server that
knows nothing but locks; docs/redis-door.md names them.

Without --rights all clients that reach the server may do everything. So it listens on
this machine only, unless it has --rights, --tls-cert and --tls-key. --rights names a JSON
file, which is read again when it changes:

  {"clients": [{"name": "ci", "token_sha256": ["..."], "subjects": ["CN=ci"],
                "rules": [{"prefix": "ci/", "rights": ["look", "lock", "break"]}],
                "limits": {"requests_per_second": 100, "streams": 50, "names": 20}}]}

token_sha256 has the SHA-256 of tokens, subjects those of client certificates (CN=...,
DNS:NAME or URI:...), if --client-ca says who signs them. Each break and each refusal is
logged, on standard error, as a line of JSON with "audit": true.

/terraform/NAME is for the http backend of Terraform and OpenTofu (docs/terraform.md), and
/fleetlock for machines that update themselves with Zincati (docs/fleetlock.md).`,
		Example: `  leasehold serve
  curl -N -d '{"purpose":"backup"}' http://127.0.0.1:7420/v1/locks/nightly/hold
  leasehold serve --store postgres://db/locks --listen :7420 \
      --tls-cert cert.pem --tls-key key.pem --rights rights.json`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return runServe(p, c, o) },
	}
	f := c.Flags()
	f.StringVar(&o.at.Address, "listen", o.at.Address, "the `HOST:PORT` to listen at")
	f.StringVar(&o.at.Redis, "redis", "", "also serve lock clients of Redis, such as redis-py's Lock, at\n`HOST:PORT`")
	f.IntVar(&o.at.RedisClients, "redis-clients", 10_000, "how many connections --redis takes at a time: a `NUMBER`")
	f.StringVar(&o.at.Cert, "tls-cert", "", "`FILE` with the server's certificate; read again when it changes")
	f.StringVar(&o.at.Key, "tls-key", "", "`FILE` with the key of the certificate")
	f.StringVar(&o.at.ClientCA, "client-ca", "", "`FILE` with the authorities that sign certificates of clients")
	f.StringVar(&o.rights, "rights", "", "`FILE` that says what clients may do")
	f.BoolVar(&o.ReadOnly, "read-only", false, "refuse everything that changes a lock")
	f.StringVar(&o.Prefix, "prefix", "", "serve everything below the `PATH`, such as /locks")
	f.StringVar(&o.TerraformState, "terraform-state", "", "keep states of Terraform in the folder `DIR`: docs/terraform.md")
	f.StringArrayVar(&o.fleets, "fleetlock", nil, "`GROUP`=SLOTS: so many of these machines restart at a time, for\nGROUP=SLOTS:TTL at most; can be repeated: docs/fleetlock.md")
	f.StringVar(&o.trace, "trace-url", "", "the page's link to a trace: a `URL` with {trace} for its number")
	f.StringArrayVar(&o.hosts, "host", nil, "without --rights: answer requests for this `HOST`, too, besides\nlocalhost; can be repeated")
	f.DurationVar(&o.at.Drain, "drain", o.at.Drain, "how long requests may take when the server is to end: a `TIME`")
	return c
}

// runServe serves until a signal asks it to end.
func runServe(p *program, c *cobra.Command, o serveFlags) error {
	if o.Prefix = strings.TrimRight(o.Prefix, "/"); o.Prefix != "" && o.Prefix[0] != '/' {
		return usage(c, "--prefix %q: begin it with a /", o.Prefix)
	}
	if o.at.RedisClients < 1 {
		return usage(c, "--redis-clients %d: give how many connections there can be at a time, such as 10000", o.at.RedisClients)
	}
	if os.Getenv("GOGC") == "" {
		// Most memory is that of connections which wait, and stays. Between two collections, a
		// server of 10,000 takes 360 MB with this, and up to 415 MB without it.
		debug.SetGCPercent(50)
		// A small heap would be collected after every 2 MB, which takes a fifth of a busy server's time.
		// This memory counts as in use, so a collection comes after 16 MB at the earliest.
		// It is never touched, and so takes no memory.
		defer runtime.KeepAlive(make([]byte, 32<<20))
	}
	o.Log = slog.New(slog.NewJSONHandler(p.stderr, nil))
	if o.rights != "" {
		var err error
		if o.Rights, err = rights.Open(o.rights, func(err error) { o.Log.Warn("the rights stay as they were", "error", err) }); err != nil {
			return err
		}
	} else {
		o.Hosts = append(o.hosts, "localhost")
	}
	sigs := listen()
	defer sigs.stop()
	ctx, stop := sigs.during(context.Background())
	var err error
	if o.Store, err = serveStore(ctx, p, c); err != nil {
		if sig := stop(); sig != 0 {
			err = endedBy(sig)
		}
		return err
	}
	defer o.Store.Close()
	done, err := addDoors(c, &o)
	if err != nil {
		stop()
		return err
	}
	defer done()
	defer addPage(p, c, o.Store, &o.Options, o.trace)()
	server := serve.New(o.Options)
	l, err := server.Listen(o.at)
	if err != nil {
		stop()
		return err
	}
	var redis net.Listener
	if o.at.Redis != "" {
		if redis, err = server.ListenRedis(o.at); err != nil {
			l.Close()
			stop()
			return err
		}
	}
	scheme := "http"
	if o.at.Cert != "" {
		scheme = "https"
	}
	p.voice.Note("serving locks at %s://%s%s/", scheme, l.Addr(), o.Prefix)
	served := make(chan error, 1)
	ctx, end := context.WithCancel(ctx)
	defer end()
	if redis == nil {
		served <- nil
	} else {
		p.voice.Note("serving lock clients of Redis at %s", redis.Addr())
		go func() {
			defer end() // one without the other would look like a server that is well
			served <- server.ServeRedis(ctx, redis, o.at)
		}()
	}
	err = server.Serve(ctx, l, o.at)
	end()
	err = errors.Join(err, <-served)
	if sig := stop(); sig != 0 && err == nil {
		err = endedBy(sig)
	}
	return err
}

// serveStore opens the store. memory: is of use here, unlike in other commands, and leases in
// files have to outlive this process, since their holders do.
func serveStore(ctx context.Context, p *program, c *cobra.Command) (*store.Store, error) {
	urls, _, err := p.where.urls(c)
	if err != nil || len(urls) != 1 {
		return p.openStore(ctx, c)
	}
	switch store.Scheme(urls[0]) {
	case "memory":
		p.voice.Note("warning: the locks are in the memory of this process alone: when it ends, it forgets them")
		return memstore.New(nil), nil
	case "file":
		log, settle := p.voice.StoreLogger()
		st, err := filestore.Open(ctx, urls[0], &filestore.Options{Lasting: true, Logger: log})
		settle(err == nil)
		return st, err
	}
	return p.openStore(ctx, c)
}

// addDoors checks the flags of FleetLock and Terraform. The caller calls done at the end.
func addDoors(c *cobra.Command, o *serveFlags) (done func(), err error) {
	o.Fleets = map[string]serve.Fleet{}
	for _, text := range o.fleets {
		group, rest, _ := strings.Cut(text, "=")
		slots, ttl, timed := strings.Cut(rest, ":")
		fleet := serve.Fleet{TTL: 8 * time.Hour}
		var err error
		if fleet.Slots, err = strconv.Atoi(slots); err == nil && timed {
			fleet.TTL, err = time.ParseDuration(ttl)
		}
		if err != nil || group == "" || fleet.Slots < 1 {
			return nil, usage(c, "--fleetlock %q: give GROUP=SLOTS or GROUP=SLOTS:TTL, such as default=1 or workers=2:12h", text)
		}
		if err := fleet.Check(o.Store); err != nil {
			return nil, fmt.Errorf("--fleetlock %s: %w", text, err)
		}
		o.Fleets[group] = fleet
	}
	if o.TerraformState == "" {
		return func() {}, nil
	}
	return serve.OpenStates(o.TerraformState)
}

// addPage gives the server its page, the events and the metrics, which stop ends.
func addPage(p *program, c *cobra.Command, st *store.Store, o *serve.Options, traceURL string) (stop func()) {
	seen := observe.New(st)
	o.Page = page.New(page.Options{
		Observer: seen, Client: leasehold.New(st, nil), Caps: st.Caps,
		Prefix: o.Prefix, TraceURL: traceURL, Examine: examinerOf(p, c), Log: o.Log,
	})
	o.Events = http.HandlerFunc(seen.ServeEvents)
	o.Observe = http.HandlerFunc(seen.ServeProbes)
	return seen.Close
}

// examinerOf returns what examines the store as "leasehold doctor" does, or nil if nothing can.
func examinerOf(p *program, c *cobra.Command) func(context.Context) ([]doctor.Finding, error) {
	urls, _, err := p.where.urls(c)
	if err != nil {
		return nil
	}
	s, err := schemeOf(urls)
	if err != nil {
		return nil
	}
	examine, ok := examiners[s.names[0]]
	if !ok {
		return nil
	}
	return func(ctx context.Context) ([]doctor.Finding, error) {
		return examine(ctx, strings.Join(urls, "\n"), doctorFlags{ttl: leasehold.DefaultTTL})
	}
}
