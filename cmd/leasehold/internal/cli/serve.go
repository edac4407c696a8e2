package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/store"
)

func serveCommand(p *program) *cobra.Command {
	var o serve.Options
	listen := "127.0.0.1:7420"
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the locks of a store over HTTP, and a page to see them",
		Long: `Serves the locks of the store over HTTP, for programs in any language and for curl, and a
page that shows them. The server keeps no locks itself: several servers can serve one store,
and the end of a server ends no lease.`,
		Example: `  leasehold serve
  curl -N -d '{"purpose":"backup"}' http://127.0.0.1:7420/v1/locks/nightly/hold`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runServe(p, c, o, listen) },
	}
	f := c.Flags()
	f.StringVar(&listen, "listen", listen, "`ADDRESS` to listen at")
	f.StringVar(&o.Prefix, "prefix", "", "serve everything below the `PATH`, such as /locks")
	f.BoolVar(&o.ReadOnly, "read-only", false, "refuse everything that changes a lock")
	return c
}

// runServe serves until a signal asks it to end.
func runServe(p *program, c *cobra.Command, o serve.Options, address string) error {
	sigs := listen()
	defer sigs.stop()
	ctx, stop := sigs.during(context.Background())
	st, err := p.openStore(ctx, c)
	if err != nil {
		if sig := stop(); sig != 0 {
			err = endedBy(sig)
		}
		return err
	}
	defer st.Close()
	l, err := net.Listen("tcp", address)
	if err != nil {
		stop()
		return err
	}
	server := &http.Server{Handler: newServer(p, st, o), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	p.voice.note("serving %s at http://%s", st.Caps().Engine, l.Addr())
	select {
	case err = <-ended:
		stop()
	case <-ctx.Done():
		sig := stop()
		server.Close()
		if err = <-ended; errors.Is(err, http.ErrServerClosed) {
			err = endedBy(sig)
		}
	}
	return err
}

// newServer returns the server with its page and what observes the store.
func newServer(p *program, st store.Store, o serve.Options) *serve.Server {
	o.Store, o.Client = st, client(p, st)
	return serve.New(o)
}
