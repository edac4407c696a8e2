package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
	"github.com/spf13/cobra"
)

func bootstrapCommand(p *program) *cobra.Command {
	force, wait := false, 5*time.Second
	c := &cobra.Command{
		Use:   "bootstrap --store redis://HOST,HOST...",
		Short: "Declare that new Redis servers hold no forgotten locks",
		Long: `Declares that these servers know of every lock that is held: because they are new, or
because every former holder is known to be gone.

With several Redis servers the majority decides. A server that may have forgotten
leases (restarted without its data, emptied, replaced) is kept in quarantine until
the longest of them has ended. New servers look the same, so without this command
the first lock on them is granted after max_ttl. If that is not set, this takes a
minute, or as long as the longest TTL that a client asks for.

The declaration is valid until the servers restart. All of them must answer, and no
lock may be held. If the declaration is false, a lock can have two holders. For
servers that are still starting it waits as long as --wait says.`,
		Example: `  leasehold bootstrap --store redis://a,b,c`,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.bootstrap(c, wait, force)
		},
	}
	c.Flags().BoolVar(&force, "force", false, "declare it even if locks are held")
	c.Flags().DurationVar(&wait, "wait", wait, "give up after waiting for servers for that `TIME`")
	return c
}

func (p *program) bootstrap(c *cobra.Command, wait time.Duration, force bool) error {
	url, s, err := p.storeAsked(c)
	if err != nil {
		return err
	}
	if s.usage != redisScheme.usage {
		return usage(c, "this store has no quarantine to end: bootstrap is for redis://")
	}
	log, settle := p.voice.StoreLogger()
	declared, err := whenStarted(c.Context(), p.voice, wait, func() ([]redisadmin.Declared, error) {
		return redisadmin.Bootstrap(c.Context(), url, &redisstore.Options{Logger: log}, force)
	})
	settle(err == nil)
	if errors.Is(err, store.ErrBusy) {
		return fmt.Errorf("%w (--force declares it all the same)", err)
	}
	if err != nil {
		return err
	}
	for _, d := range declared {
		fmt.Fprintf(p.stdout, "%s (run %s): declared new, no quarantine\n", d.Node, d.RunID)
	}
	return nil
}

// whenStarted calls declare again, for wait at most, while servers are still starting. Such
// a server refuses connections, or loads its data.
func whenStarted(ctx context.Context, v *voice.Voice, wait time.Duration, declare func() ([]redisadmin.Declared, error)) ([]redisadmin.Declared, error) {
	const pause = 100 * time.Millisecond
	for end, said := time.Now().Add(wait), false; ; {
		declared, err := declare()
		if !starting(err) || !time.Now().Before(end) {
			return declared, err
		}
		if !said {
			v.Note("waiting up to %s for servers to start: %s", voice.Short(wait), notStarted(err))
			said = true
		}
		if !clock.Sleep(ctx, pause) {
			return nil, err
		}
	}
}

// notStarted says which servers do not answer yet. Why is left to the error at the end.
func notStarted(err error) string {
	var quorum *store.QuorumError
	if !errors.As(err, &quorum) || len(quorum.Nodes) == 1 {
		return voice.Plain(err)
	}
	return quorum.Summary() + ": " + store.Silent(quorum.Nodes)
}

// starting reports whether all that err says is that servers do not answer yet.
func starting(err error) bool {
	var quorum *store.QuorumError
	return errors.As(err, &quorum) && quorum.Count(store.Granted)+quorum.Count(store.Unreachable)+quorum.Count(store.Loading) == len(quorum.Nodes)
}
