package cli

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
	"github.com/spf13/cobra"
)

// aclUses are the purposes that a Redis user can have.
var aclUses = map[string]redisadmin.Use{
	"lock":      redisadmin.ToLock,
	"show":      redisadmin.ToShow,
	"ls":        redisadmin.ToList,
	"doctor":    redisadmin.ToExamine,
	"bootstrap": redisadmin.ToDeclare,
}

const aclUsesHelp = "lock, show, ls, doctor, bootstrap"

func aclCommand(p *program) *cobra.Command {
	rule := redisadmin.ACL{}
	uses, db := []string{}, 0
	c := &cobra.Command{
		Use:   "acl",
		Short: "Print the commands that give a user of the store the least rights",
		Long: `Prints an ACL rule that gives a Redis user the least rights it needs. Paste it into
redis-cli on every server. The rule replaces all rights that the user had. No
server is contacted and no password is asked for: replace ` + redisadmin.Password + ` in the rule,
or put # and the SHA-256 of the password in hexadecimal in place of the > and the
word after it.

With --prefix the rule is limited to locks whose names begin with the prefix. A
space in the prefix becomes a ?, which matches any one character, since ACL
patterns cannot contain spaces.

--for says what the user may do, several separated by commas:
  lock       acquire, renew, release and look at locks (run, bench, the library)
  show       look at a lock, but not acquire one
  ls         list and look at locks, and complete their names
  doctor     all that "leasehold doctor" can check. It includes +config|get, which
             also reveals passwords in the server's configuration
  bootstrap  declare new servers and replace servers (bootstrap, replace)
With --cluster the rule is for all servers of a Redis Cluster, replicas included;
before Redis 7 leave out +spublish and +ssubscribe.

Before Redis 6.2 there are no channel rules: leave out the words that begin with &.
Among several servers, a user that may only look cannot look at a server on which
nobody has locked since it was started.

For a store at etcd://, acl prints commands for etcdctl instead, which make a role and
a user; --prefix and --for mean the same. For one at zookeeper://, it prints commands for
zkCli.sh: only that user may then change the locks below the node in the URL, and only the
readers in the URL may look at them. For one at kubernetes://, it prints a Role
and its binding to the service account --user; --for means the same. acl never connects
to a store.

The rule goes to standard output, a reminder to standard error (not with -q).`,
		Example: `  leasehold acl --user locker --prefix jobs/
  leasehold acl --user viewer --for ls
  leasehold acl --store etcd://a,b,c --prefix jobs/
  leasehold acl --store zookeeper://a,b,c/leasehold?reader=world:anyone --user locker
  leasehold acl --store kubernetes://jobs --user locker | kubectl apply -f -`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, u := range uses {
				use, ok := aclUses[u]
				if !ok {
					return usage(c, "--for %s: there are %s", voice.Shown(u), aclUsesHelp)
				}
				rule.Uses |= use
			}
			if rule.Uses == 0 {
				return usage(c, "--for is empty: there are %s", aclUsesHelp)
			}
			url, kind, err := p.storeAsked(c)
			if err != nil {
				return err
			}
			switch kind.names[0] {
			case zookeeperScheme.names[0]:
				return zookeeperACL(p, c, url, rule.User)
			case etcdScheme.names[0]:
				return etcdACL(p, c, url, rule.User, rule.Prefix, rule.Uses)
			case kubernetesScheme.names[0]:
				return kubernetesACL(p, c, url, rule.User, rule.Uses)
			case postgresqlScheme.names[0], mysqlScheme.names[0]:
				return fmt.Errorf("rights in a database are given by \"leasehold schema --grant ROLE\": see \"leasehold schema --help\"")
			}
			if rule.Cluster && (db != 0 || rule.Uses&redisadmin.ToDeclare != 0) {
				return usage(c, "a cluster has only database 0, and needs no bootstrap")
			}
			if db < 0 {
				return usage(c, "--db %d is not a database number", db)
			}
			rule.DB = db != 0
			line, err := rule.Line()
			if err != nil {
				return usage(c, "--user: %s", strings.TrimPrefix(err.Error(), "redis: "))
			}
			p.voice.Note("replace %s in the rule by the password of %s, and run it on every server", redisadmin.Password, voice.Shown(rule.User))
			_, err = fmt.Fprintln(p.stdout, line)
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&rule.User, "user", "locker", "the `NAME` of the user")
	f.StringVar(&rule.Prefix, "prefix", "", "limit the rule to locks whose names begin with `PREFIX`")
	f.StringSliceVar(&uses, "for", []string{"lock"}, "a `LIST` of "+aclUsesHelp+": see above")
	f.BoolVar(&rule.Cluster, "cluster", false, "for the servers of a Redis Cluster: see above")
	f.IntVar(&db, "db", 0, "the `NUMBER` of the database in the store's URL")
	return c
}
