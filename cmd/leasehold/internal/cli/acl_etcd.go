package cli

import (
	"fmt"
	neturl "net/url"
	"strings"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
	"github.com/spf13/cobra"
)

// etcdACL prints commands of etcdctl that make a user with the least rights for locks in
// the store at url whose names begin with prefix.
func etcdACL(p *program, c *cobra.Command, url, user, prefix string, uses redisadmin.Use) error {
	if uses&redisadmin.ToDeclare != 0 {
		return usage(c, "--for bootstrap: servers of etcd are not declared")
	}
	rights, err := etcdstore.Use{Names: prefix, Lock: uses&redisadmin.ToLock != 0, Examine: uses&redisadmin.ToExamine != 0}.Rights(url, nil)
	if err != nil {
		return err
	}
	if name := userIn(url); !c.Flags().Changed("user") && name != "" {
		user = name
	}
	if user == "" || strings.Contains(user, ":") {
		return usage(c, "--user %s: etcd cannot have a user of that name", voice.Shown(user))
	}
	name := shellWord(user)
	lines := []string{"etcdctl role add " + name}
	for _, r := range rights {
		kind, all := "read", ""
		if r.Write {
			kind = "readwrite"
		}
		if r.Prefix {
			all = " --prefix"
		}
		lines = append(lines, fmt.Sprintf("etcdctl role grant-permission %s %s %s%s", name, kind, shellWord(r.Key), all))
	}
	lines = append(lines, "etcdctl user add "+name, fmt.Sprintf("etcdctl user grant-role %s %s", name, name))
	p.voice.Note(`run the commands as root of etcd, and enter a password for %s; rights count once "etcdctl auth enable" was given`, voice.Shown(user))
	_, err = fmt.Fprintln(p.stdout, strings.Join(lines, "\n"))
	return err
}

// userIn returns the user in a valid URL, which may name several hosts.
func userIn(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	authority, _, _ := strings.Cut(rest, "/")
	login := authority[:max(strings.LastIndex(authority, "@"), 0)]
	name, _, _ := strings.Cut(login, ":")
	name, _ = neturl.PathUnescape(name)
	return name
}

// shellWord returns s as one word of a shell.
func shellWord(s string) string {
	if harmless(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
