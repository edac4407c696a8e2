package cli

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
	"github.com/leasehold-dev/leasehold/store/zkstore"
	"github.com/spf13/cobra"
)

// zookeeperACL prints commands for zkCli.sh that let only one user change locks in the store at url.
func zookeeperACL(p *program, c *cobra.Command, url, user string) error {
	for _, flag := range []string{"prefix", "for", "db", "cluster"} {
		if c.Flags().Changed(flag) {
			return usage(c, "--%s: ZooKeeper has rights to nodes only; another node is another store, and reader= in the URL names users who only look", flag)
		}
	}
	access, err := zkstore.AccessOf(url, nil)
	if err != nil {
		return err
	}
	if !c.Flags().Changed("user") && len(access.Auth) > 0 {
		user, _, _ = strings.Cut(access.Auth[0].ID, ":")
	}
	if user == "" || strings.ContainsAny(user, ": \t\n") {
		return usage(c, "--user %s: a name without spaces and colons", voice.Shown(user))
	}
	base, rule := access.Base, "auth::cdrwa"
	for _, r := range access.Readers {
		rule += "," + r.Scheme + ":" + r.ID + ":r"
	}
	lines := []string{"addauth digest " + user + ":" + redisadmin.Password}
	for i := 1; i <= len(base); i++ { // zkCli.sh makes no parents
		if i == len(base) || base[i] == '/' {
			lines = append(lines, "create "+base[:i])
		}
	}
	lines = append(lines, "setAcl -R "+base+" "+rule)
	p.voice.Note("replace %s by the password of %s, and give the commands to zkCli.sh, connected to one server", redisadmin.Password, voice.Shown(user))
	_, err = fmt.Fprintln(p.stdout, strings.Join(lines, "\n"))
	return err
}
