package cli

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
	"github.com/leasehold-dev/leasehold/store/zkstore"
	"github.com/spf13/cobra"
)

// zookeeperStoreACL is zookeeperACL for the store at url.
func zookeeperStoreACL(p *program, c *cobra.Command, url, user string, readers []string) error {
	access, err := zkstore.AccessOf(url, nil)
	if err != nil {
		return err
	}
	if !c.Flags().Changed("user") && len(access.Auth) > 0 {
		user, _, _ = strings.Cut(access.Auth[0].ID, ":")
	}
	for _, r := range access.Readers {
		readers = append(readers, r.Scheme+":"+r.ID)
	}
	return zookeeperACL(p, c, access.Base, user, readers)
}

// zookeeperACL prints commands for zkCli.sh that let only one user change locks.
func zookeeperACL(p *program, c *cobra.Command, base, user string, readers []string) error {
	for _, flag := range []string{"prefix", "for", "db", "cluster"} {
		if c.Flags().Changed(flag) {
			return usage(c, "--%s: ZooKeeper has rights to nodes only; another node is another store, and --reader names users who only look", flag)
		}
	}
	rule := []string{"auth::cdrwa"}
	url := "zookeeper://h" + base
	for _, r := range readers {
		rule = append(rule, r+":r")
		if scheme, id, ok := strings.Cut(r, ":"); !ok || scheme == "" || id == "" || strings.ContainsAny(r, " ,\t\n") {
			return usage(c, "--reader %s: it is SCHEME:ID, such as world:anyone", shown(r))
		}
	}
	if _, err := zkstore.AccessOf(url, nil); err != nil || !strings.HasPrefix(base, "/") || strings.ContainsAny(base, " ?#") {
		return usage(c, "--zookeeper %s: it is the path of a node, such as %s", shown(base), zkstore.DefaultBase)
	}
	if user == "" || strings.ContainsAny(user, ": \t\n") {
		return usage(c, "--user %s: a name without spaces and colons", shown(user))
	}
	lines := []string{"addauth digest " + user + ":" + redisadmin.Password}
	for i := 1; i <= len(base); i++ { // zkCli.sh makes no parents
		if i == len(base) || base[i] == '/' {
			lines = append(lines, "create "+base[:i])
		}
	}
	lines = append(lines, "setAcl -R "+base+" "+strings.Join(rule, ","))
	p.voice.note("replace %s by the password of %s, and give the commands to zkCli.sh, connected to one server", redisadmin.Password, shown(user))
	_, err := fmt.Fprintln(p.stdout, strings.Join(lines, "\n"))
	return err
}
