package redisstore

import (
	"fmt"
	"slices"
	"strings"
)

// Use is what a user of the servers is there for: any of these together.
type Use uint8

// The uses.
const (
	ToLock    Use = 1 << iota // acquire, renew, release and inspect: what locks need
	ToShow                    // look at locks, and never take one
	ToList                    // find the names of locks as well
	ToExamine                 // be given all that Examine can find out
	ToDeclare                 // call Bootstrap
)

// ACL is the rule of a user with the least rights.
type ACL struct {
	User string
	// Prefix is what the names of its locks begin with; empty for all locks.
	Prefix string
	Uses   Use
	// DB says that the URLs name another database than 0.
	DB bool
	// Cluster says that the servers are those of a Redis Cluster, from version 7 on.
	Cluster bool
}

const (
	anyUse   = ToLock | ToShow | ToList | ToExamine | ToDeclare
	toChange = ToLock | ToExamine
	toSee    = toChange | ToShow
)

// rights are the commands of an ACL rule, in the order in which it names them,
// and what they are for. Commands that every user may run are not among them. The
// last two, or in a cluster the two before the last, are for those who wait to be told
// when it is their turn; without them they ask now and then.
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
	{"pttl", anyUse},
	{"pexpire", toChange},
	{"time", anyUse},
	{"info", anyUse},
	{"ping", ToDeclare},
	{"scan", ToList | ToExamine | ToDeclare},
	{"type", ToExamine},
	{"hscan", toSee},
	{"config|get", ToExamine},
	{"client|tracking", ToLock},
	{"publish", toChange},
	{"subscribe", toChange},
}

// inCluster are the commands that stand for others in a cluster, where there are no marks
// to be told about.
var inCluster = map[string]string{"publish": "spublish", "subscribe": "ssubscribe", "client|tracking": ""}

// clusterRights are those that only a cluster needs, whatever for.
var clusterRights = []string{"cluster|slots", "asking"}

// Password is what stands for the password in a rule, to be replaced.
const Password = "PASSWORD"

// Rule is the rule as arguments of ACL SETUSER: the user, then what it may do.
// Everything that the user could do before is taken away. ACL patterns can not
// have spaces; a ? stands for each, which matches any one byte.
func (a ACL) Rule() ([]string, error) {
	if a.User == "" || strings.ContainsAny(a.User, " \x00") {
		return nil, fmt.Errorf("redis: %q can not be the name of a user: it must not be empty or have spaces", a.User)
	}
	rule := append([]string{a.User, "reset", "on", ">" + Password}, a.keys()...)
	if a.Uses&toChange != 0 {
		rule = append(rule, "&"+channelBegin+"*")
	}
	for _, c := range a.commands() {
		rule = append(rule, "+"+c)
	}
	return rule, nil
}

// Line is the rule as it is typed into redis-cli.
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

// patterns are those of the keys: of locks, of what belongs to them, and of what
// belongs to a node.
func (a ACL) patterns() []string {
	prefix := spaceless.Replace(globEscape.Replace(a.Prefix))
	return []string{prefix + "*", keyBegin + prefix + "*}:*", markKey}
}

func (a ACL) keys() (all []string) {
	if a.Prefix == "" {
		return []string{"~*"} // which the others would add nothing to
	}
	patterns := a.patterns()
	if a.Cluster {
		patterns = slices.DeleteFunc(patterns, func(p string) bool { return p == markKey })
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
	if a.Cluster {
		names = append(names, clusterRights...)
	}
	if a.DB {
		names = append(names, "select")
	}
	return names
}

var spaceless = strings.NewReplacer(" ", "?", "\x00", "?")

// cliWord quotes a word for redis-cli if it needs that.
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
