package redisadmin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Use says what a user of the servers may do. Uses can be combined with |.
type Use uint8

// The uses.
const (
	ToLock    Use = 1 << iota // acquire, renew, release and inspect locks
	ToShow                    // look at locks, but never acquire one
	ToList                    // find the names of locks as well
	ToExamine                 // read everything that Examine reports
	ToDeclare                 // call Bootstrap
)

// ACL describes the ACL rule of a user with the least permissions that its uses need.
type ACL struct {
	// User is the name of the user.
	User string
	// Prefix is what the names of the user's locks begin with; empty allows all names.
	Prefix string
	// Uses are what the user may do, combined with |.
	Uses Use
	// DB is set if the URLs select a database other than 0.
	DB bool
	// Cluster is set if the servers form a Redis Cluster of version 7 or later.
	Cluster bool
}

const (
	anyUse   = ToLock | ToShow | ToList | ToExamine | ToDeclare
	toChange = ToLock | ToExamine
	toSee    = toChange | ToShow
)

// rights lists the commands of an ACL rule, in the order in which the rule names them,
// and the uses that need each. Commands that every user may run are left out. The last
// two let clients receive pushes; without them waiters poll. Without client|tracking, a
// replacement of the server's data is noticed later.
var rights = []struct {
	command string
	uses    Use
}{
	{"evalsha", anyUse},
	{"eval", anyUse},
	{"get", anyUse},
	{"mget", toChange},
	{"set", toChange | ToDeclare},
	{"del", toChange},
	{"rpush", toChange},
	{"lindex", toChange},
	{"linsert", toChange},
	{"lrange", toSee},
	{"lrem", toChange},
	{"lpop", toChange},
	{"hset", toChange},
	{"hmget", toChange},
	{"hgetall", anyUse},
	{"hdel", toChange},
	{"zadd", toChange},
	{"zrem", toChange},
	{"zscore", toChange},
	{"zrange", anyUse},
	{"pttl", anyUse},
	{"pexpire", toChange},
	{"time", anyUse},
	{"info", anyUse},
	{"ping", ToDeclare},
	{"scan", ToList | ToExamine | ToDeclare},
	{"type", ToExamine},
	{"hscan", toSee},
	{"config|get", ToExamine},
	{"client|tracking", toChange},
	{"publish", toChange},
	{"subscribe", toChange},
}

// inCluster maps commands to those that replace them in a cluster. Marks do not exist
// there, so nothing tracks them.
var inCluster = map[string]string{"publish": "spublish", "subscribe": "ssubscribe", "client|tracking": ""}

// toPushBreaks are the commands by which a holder in a cluster is notified at once that its lease was
// broken: that is published to all servers, and so not by sharded publish.
var toPushBreaks = []string{"publish", "subscribe"}

// clusterRights are the commands that only a cluster needs, for every use.
var clusterRights = []string{"cluster|slots", "cluster|info", "asking"}

// Password is the placeholder for the password in a rule.
const Password = "PASSWORD"

// Rule returns the rule as arguments of ACL SETUSER: the user name, then its permissions.
// The rule first resets the user. ACL patterns cannot contain spaces, so each space in a
// prefix becomes a ?, which matches any one byte. Rule fails if User is empty or contains
// spaces.
func (a ACL) Rule() ([]string, error) {
	if a.User == "" || strings.ContainsAny(a.User, " \x00") {
		return nil, fmt.Errorf("redis: %q is no user name: it must not be empty or contain spaces", a.User)
	}
	rule := append([]string{a.User, "reset", "on", ">" + Password}, a.keys()...)
	if a.Uses&toChange != 0 {
		rule = append(rule, "&"+script.ChannelBegin+"*")
	}
	for _, c := range a.commands() {
		rule = append(rule, "+"+c)
	}
	return rule, nil
}

// Line returns the rule as one line for redis-cli. It fails if Rule does.
func (a ACL) Line() (string, error) {
	rule, err := a.Rule()
	if err != nil {
		return "", err
	}
	for i := range rule {
		rule[i] = cliWord(rule[i])
	}
	return "ACL SETUSER " + strings.Join(rule, " "), nil
}

// patterns returns the key patterns: for locks, for the other keys of locks, and for the
// keys of a node.
func (a ACL) patterns() []string {
	prefix := spaceless.Replace(script.GlobEscape.Replace(a.Prefix))
	return []string{prefix + "*", script.KeyBegin + prefix + "*}:*", script.MarkKey, script.AloneKey}
}

func (a ACL) keys() (all []string) {
	if a.Prefix == "" {
		return []string{"~*"} // the other patterns would add nothing
	}
	patterns := a.patterns()
	if a.Cluster {
		patterns = patterns[:2]
	} else if a.Uses&(toChange|ToDeclare) == 0 {
		patterns = patterns[:3]
	}
	for _, p := range patterns {
		all = append(all, "~"+p)
	}
	return all
}

func (a ACL) commands() (names []string) {
	for _, r := range rights {
		if r.uses&a.Uses == 0 {
			continue
		}
		command := r.command
		if other, ok := inCluster[command]; a.Cluster && ok {
			command = other
		}
		if command != "" {
			names = append(names, command)
		}
	}
	if a.Cluster && a.Uses&ToLock != 0 {
		names = append(names, toPushBreaks...)
	}
	if a.Cluster {
		names = append(names, clusterRights...)
	}
	if a.DB {
		names = append(names, "select")
	}
	return names
}

var spaceless = strings.NewReplacer(" ", "?", "\x00", "?")

// cliWord quotes a word for redis-cli if necessary.
func cliWord(w string) string {
	plain := func(r rune) bool { return r > ' ' && r < 0x7f && r != '"' && r != '\'' && r != '\\' }
	if !slices.ContainsFunc([]rune(w), func(r rune) bool { return !plain(r) }) {
		return w
	}
	var b strings.Builder
	for i := range len(w) {
		if c := w[i]; plain(rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return `"` + b.String() + `"`
}
