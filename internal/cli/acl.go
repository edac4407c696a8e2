package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/store/redis"
)

// aclUses are what a Redis user can be for.
var aclUses = map[string]redis.Use{
	"lock":      redis.ToLock,
	"show":      redis.ToShow,
	"ls":        redis.ToList,
	"doctor":    redis.ToExamine,
	"bootstrap": redis.ToDeclare,
}

const aclUsesHelp = "lock, show, ls, doctor, bootstrap"

func (p *program) aclCommand() *cobra.Command {
	rule := redis.ACL{}
	uses, db := []string{}, 0
	c := &cobra.Command{
		Use:   "acl",
		Short: "Print the least Redis ACL rule",
		Long: `Prints the ACL rule that gives a Redis user the least rights with which it can do
what it is for; redis-cli takes it as it is, on every server. What the user could
do before is taken away. No server is asked, and no password: replace ` + redis.Password + `
in the rule, or put the SHA-256 of the password there, in hexadecimal, with # for
the > before it.

With --prefix it is for locks whose names begin so. A space in it becomes a ?,
because ACL patterns have none, and so stands for any one character.

What the user is for, several separated by commas:
  lock       everything but the following: take locks, keep them, give them back,
             look at them (run, bench, the library)
  show       look at locks, and never take one
  ls         list and show locks; completion of names, too
  doctor     be told everything that "leasehold doctor" can find out. This has
             +config|get, which also shows passwords in a server's configuration
  bootstrap  declare new servers to be new, and replace them (replace)
With --cluster it is for all servers of a Redis Cluster, replicas as well; before
Redis 7 write +publish +subscribe for +spublish +ssubscribe.

Channels (the word that begins with &) came with Redis 6.2: leave it out before.
Of several servers, those that nobody has locked on since they were started can
not be looked at by those who only look.

The rule goes to standard output, a reminder to standard error (not with -q).`,
		Example: `  leasehold acl --user locker --prefix jobs/
  leasehold acl --user viewer --for ls`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(c, "it takes no arguments")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, u := range uses {
				use, ok := aclUses[u]
				if !ok {
					return usage(c, "--for %s: there are %s", shown(u), aclUsesHelp)
				}
				rule.Uses |= use
			}
			if rule.Uses == 0 {
				return usage(c, "--for is empty: there are %s", aclUsesHelp)
			}
			if rule.Cluster && (db != 0 || rule.Uses&redis.ToDeclare != 0) {
				return usage(c, "a cluster has no databases but 0, and nothing to bootstrap")
			}
			if db < 0 {
				return usage(c, "--db %d is not the number of a database", db)
			}
			rule.DB = db != 0
			line, err := rule.Line()
			if err != nil {
				return usage(c, "--user: %s", strings.TrimPrefix(err.Error(), "redis: "))
			}
			p.voice.note("replace %s by the password of %s, on every server", redis.Password, shown(rule.User))
			_, err = fmt.Fprintln(p.stdout, line)
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&rule.User, "user", "locker", "the user's name")
	f.StringVar(&rule.Prefix, "prefix", "", "what the names of the locks begin with")
	f.StringSliceVar(&uses, "for", []string{"lock"}, "what the user is for: a `LIST` of "+aclUsesHelp)
	f.BoolVar(&rule.Cluster, "cluster", false, "for the servers of a Redis Cluster (version 7 or newer)")
	f.IntVar(&db, "db", 0, "the number of the database in the store's URL")
	return c
}
