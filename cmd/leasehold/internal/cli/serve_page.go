package cli

import (
	"context"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/observe"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/page"
	"github.com/leasehold-dev/leasehold/store"
)

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
