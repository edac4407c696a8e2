package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redis"
)

func (p *program) bootstrapCommand() *cobra.Command {
	force, asJSON := false, false
	c := &cobra.Command{
		Use:   "bootstrap --store redis://HOST,HOST...",
		Short: "Declare that new servers are new",
		Long: `Says that nobody holds a lock on these servers that they do not know of: that they
are new, or that everybody who may have had one is known to be gone.

Several Redis servers decide by majority, and a server that may have forgotten
leases (restarted without its data, emptied, replaced) takes no part until the
longest of them has ended. New servers can not be told from such ones, so without
this command the first lock is granted after max_ttl, a minute by default.

The declaration is for the servers as they run now: after a restart it does not
count any more. All of them must answer, and no lock may be held. If it is not
true, two holders at once are possible.`,
		Example: `  leasehold bootstrap --store redis://a,b,c`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(c, "there is nothing to name but the servers, with --store")
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return p.bootstrap(c, force, asJSON)
		},
	}
	c.Flags().BoolVar(&force, "force", false, "even while locks are held")
	c.Flags().BoolVar(&asJSON, "json", false, "print an array of the servers declared: node, run_id")
	return c
}

// declaredJSON is part of what is promised: see the help of --json.
type declaredJSON struct {
	Node  string `json:"node"`
	RunID string `json:"run_id"`
}

func (p *program) bootstrap(c *cobra.Command, force, asJSON bool) error {
	urls, s, err := p.storeAsked(c)
	if err != nil {
		return err
	}
	if s.usage != redisScheme.usage {
		return usage(c, "this store keeps no servers out that may have forgotten a lease: bootstrap is for redis://")
	}
	log, settle := p.voice.storeLogger()
	declared, err := redis.Bootstrap(c.Context(), urls, &redis.Options{Logger: log}, force)
	settle(err == nil)
	if errors.Is(err, store.ErrBusy) {
		return fmt.Errorf("%w (--force declares them empty all the same)", err)
	}
	if err != nil {
		return err
	}
	list := make([]declaredJSON, len(declared))
	for i, d := range declared {
		list[i] = declaredJSON(d)
	}
	if asJSON {
		return writeJSON(p.stdout, list)
	}
	for _, d := range list {
		fmt.Fprintf(p.stdout, "%s (run %s): nobody holds a lock there that it does not know of\n", d.Node, d.RunID)
	}
	return nil
}
