package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/store/redis"
)

func (p *program) replaceCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "replace --store redis://HOST,HOST...?next=HOST,HOST...",
		Short: "Replace one list of Redis servers by another",
		Long: `Ends the replacement of the servers in the URL by those after next=, without a
moment in which two could have a lock. Clients that know different lists need not
exclude each other: of a,b,c and a,b,d one could have the majority a,c and one b,d.

  1. Give all clients both lists, one after the other, in any order:
     redis://a,b,c?next=a,b,d
     They ask for a majority of each, and work beside those that have the old list.
  2. Run this command with the same URL. Servers now refuse clients that have the
     old list only; whoever holds a lock by it loses it, and is told. After max_ttl
     (a minute by default) clients that have the new list only are served.
  3. Give all clients the new list: redis://a,b,d

From one server to several it is the same, with redis://a?next=a,b,c. Before Redis 6
clients that have the one server only do not hear of it: end them before step 2.

A majority of each list must answer, and in the end every server of the new list:
one that was not told refuses clients that have the new list only. If the command
fails or is interrupted, clients with both lists go on. Run it again, then also
without the old servers, provided that it got as far as waiting for max_ttl.`,
		Example: `  leasehold replace --store 'redis://a,b,c?next=a,b,d'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(c, "there is nothing to name but the servers, with --store")
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			urls, s, err := p.storeAsked(c)
			if err != nil {
				return err
			}
			if s.usage != redisScheme.usage {
				return errors.New("this store is not a list of independent servers: replace is for redis://")
			}
			log, settle := p.voice.storeLogger()
			err = redis.Replace(c.Context(), urls, &redis.Options{Logger: log}, func(step string) { p.voice.note("%s", step) })
			settle(err == nil)
			return err
		},
	}
}
