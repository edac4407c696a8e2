package cli

import (
	"errors"

	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
	"github.com/spf13/cobra"
)

func replaceCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "replace --store redis://HOST,HOST...?next=HOST,HOST...",
		Short: "Replace the list of Redis servers",
		Long: `Completes the replacement of the servers in the URL by those after next=, without
a moment in which a lock can have two holders. Clients with different lists do not
necessarily exclude each other: of a,b,c and a,b,d one client could have the
majority a,c and another b,d.

  1. Give all clients both lists, one after the other, in any order:
     redis://a,b,c?next=a,b,d
     They need a majority of each list, and work beside clients with the old list.
  2. Run this command with the same URL. The servers now refuse clients that have
     only the old list; holders among them lose their locks and are notified. After
     max_ttl (if not set: a minute, or the longest TTL that a client has asked for)
     clients with only the new list are served.
  3. Give all clients the new list: redis://a,b,d

Going from one server to several works the same way: redis://a?next=a,b,c. Before
Redis 6, clients with only the one server are not notified: end them before step 2.

A majority of each list must answer, and in the end every server of the new list: a
server that does not know of the new list refuses clients that have only that. If the
command fails or is interrupted, clients with both lists go on working. Run it
again, even without the old servers, provided that it got as far as waiting for
the leases that the old servers granted.`,
		Example: `  leasehold replace --store 'redis://a,b,c?next=a,b,d'`,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			url, s, err := p.storeAsked(c)
			if err != nil {
				return err
			}
			if s.usage != redisScheme.usage {
				return errors.New("this store is not a list of independent servers: replace is for redis://")
			}
			log, settle := p.voice.StoreLogger()
			err = redisadmin.Replace(c.Context(), url, &redisstore.Options{Logger: log}, func(step string) { p.voice.Note("%s", step) })
			settle(err == nil)
			return err
		},
	}
}
