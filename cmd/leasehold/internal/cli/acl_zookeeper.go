package cli

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
	"github.com/leasehold-dev/leasehold/store/zkstore"
	"github.com/spf13/cobra"
)

// zookeeperACL prints commands for zkCli.sh that let only one user change locks.
func zookeeperACL(p *program, c *cobra.Command, base, user string, readers []string) error {
	rule := []string{"auth::cdrwa"}
	url := "zookeeper://h" + base
	for _, r := range readers {
		rule = append(rule, r+":r")
		if scheme, id, ok := strings.Cut(r, ":"); !ok || scheme == "" || id == "" || strings.ContainsAny(r, " ,\t\n") {
			return usage(c, "--reader %s: it is SCHEME:ID, such as world:anyone", shown(r))
		}
	}
	if _, err := zkstore.ParseURL(url); err != nil || !strings.HasPrefix(base, "/") || strings.ContainsAny(base, " ?#") {
		return usage(c, "--zookeeper %s: it is the path of a node, such as %s", shown(base), zkstore.DefaultBase)
	}
	if user == "" || strings.ContainsAny(user, ": \t\n") {
		return usage(c, "--user %s: a name without spaces and colons", shown(user))
	}
	p.voice.note("replace %s by the password of %s, and give the commands to zkCli.sh, connected to one server", redisadmin.Password, shown(user))
	_, err := fmt.Fprintf(p.stdout, "addauth digest %s:%s\ncreate %s\nsetAcl -R %s %s\n", user, redisadmin.Password, base, base, strings.Join(rule, ","))
	return err
}
