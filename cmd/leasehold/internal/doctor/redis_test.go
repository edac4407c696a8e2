package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

var errDenied = errors.New("NOPERM not for you")

// sound returns n servers without findings.
func sound(n int) redisadmin.Examination {
	e := redisadmin.Examination{
		Memberships: make([][]int, 1), TTL: 30 * time.Second, MaxTTL: time.Minute, Limited: true, NodeTimeout: 300 * time.Millisecond, Quarantine: 61 * time.Second,
	}
	for i := range n {
		letter := string(rune('a' + i))
		e.Memberships[0] = append(e.Memberships[0], i)
		e.Nodes = append(e.Nodes, redisadmin.Examined{
			Node: letter + ":6379", Host: "10.0.0." + letter, Outcome: store.Granted,
			Trip: time.Millisecond, Slowest: 2 * time.Millisecond, AheadError: time.Millisecond,
			Mark: redisadmin.Mark{Found: true, RunID: "run-" + letter, Durable: true},
			Server: redisadmin.Server{
				Version: "7.0.15", RunID: "run-" + letter, Mode: "standalone", Uptime: time.Hour,
				Memory: 1 << 20, SystemMemory: 1 << 34, Eviction: "noeviction", AppendOnly: true, Fsync: "always",
			},
		})
	}
	return e
}

// redisCase makes one finding, and no other that is worse.
type redisCase struct {
	name     string
	nodes    int
	make     func(e *redisadmin.Examination, n *redisadmin.Examined) // n is the first node
	severity Severity
	code     Code
	node     string // "a:6379" or none
	says     string
}

const first = "a:6379"

var redisCases = []redisCase{
	{"most are down", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		*n = redisadmin.Examined{Node: first, Outcome: store.Unreachable, Err: errors.New("refused")}
		e.Nodes[1] = redisadmin.Examined{Node: "b:6379", Outcome: store.TimedOut, Err: errors.New("late")}
	}, Error, "no-quorum", "", "Of 3 nodes one can take part, and 2 are needed"},
	{"all are down", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		for i := range e.Nodes {
			e.Nodes[i].Outcome = store.Unreachable
		}
	}, Error, "no-quorum", "", "none can"},
	{"three of five are down", 5, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		for i := range 3 {
			e.Nodes[i].Server.Replica = true
		}
	}, Error, "no-quorum", "", "2 can take part, and 3"},
	{"one of two lists lacks its majority", 5, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		e.Memberships = [][]int{{0, 1, 2}, {0, 3, 4}}
		n.Outcome, e.Nodes[4].Server.Replica = store.Unreachable, true
	}, Error, "no-quorum", "", "Of 3 nodes (a:6379, d:6379, e:6379) one can take part, and 2 are needed"},
	{"each of two lists has its majority", 5, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		e.Memberships = [][]int{{0, 1, 2}, {0, 3, 4}}
		n.Outcome = store.Unreachable
	}, Warning, "node-unreachable", first, "reached"},
	{"two lists", 4, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		e.Memberships = [][]int{{0, 1, 2}, {0, 1, 3}}
	}, Info, "list-being-replaced", "", "majority of each"},
	{"one of two lists is even", 4, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		e.Memberships = [][]int{{0, 1, 2}, {0, 3}}
	}, Warning, "even-nodes", "", "2 nodes (a:6379, d:6379)"},
	{"with others", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Mark.Others = "a:1,x:1" }, Warning, "other-list", first, "together with a:1,x:1, and"},
	{"the only one, with others", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Mark.Others = "a:1,x:1" }, Error, "other-list", first, "together with a:1,x:1, and"},
	{"all with others", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		for i := range e.Nodes {
			e.Nodes[i].Mark.Others = "a:1>x:1"
		}
	}, Error, "other-list", first, "together with a:1, which are being replaced by x:1, and"},
	{"one of three is down", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		*n = redisadmin.Examined{Node: first, Outcome: store.Unreachable, Err: errors.New("refused")}
	}, Warning, "node-unreachable", first, "refused"},
	{"the only one is down", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		*n = redisadmin.Examined{Node: first, Outcome: store.Unreachable, Err: errors.New("refused")}
	}, Error, "node-unreachable", first, "refused"},
	{"one is silent", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		*n = redisadmin.Examined{Node: first, Outcome: store.TimedOut, Err: errors.New("no answer within 1s")}
	}, Warning, "node-silent", first, "no answer within 1s"},
	{"wrong password", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		*n = redisadmin.Examined{Node: first, Outcome: store.Refused, Err: errors.New("WRONGPASS")}
	}, Error, "login-refused", first, "WRONGPASS"},
	{"loading", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.Loading = true }, Warning, "node-loading", first, "loading"},
	{"loading, as a reply", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Outcome = store.Loading }, Error, "node-loading", first, "loading"},
	{"listed twice", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.RunID = "run-c" }, Error, "same-server", "", "a:6379 and c:6379 are one server"},
	{"on one machine", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Host = "10.0.0.b" }, Warning, "same-host", "", "2 of 3"},
	{"four servers", 4, func(*redisadmin.Examination, *redisadmin.Examined) {}, Warning, "even-nodes", "", "4 nodes are no safer than 3"},
	{"an old server", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.Version = "4.0.14" }, Error, "server-too-old", first, "4.0.14"},
	{"a replica", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Server.Replica, n.Server.Master = true, "m:1"
	}, Error, "replica", first, "m:1"},
	{"with replicas", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.Replicas = 2 }, Warning, "replicated", first, "2 replicas"},
	{"with sentinels", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		e.Sentinels = []redisadmin.SentinelSays{{Sentinel: "s:26379", Master: first, Epoch: 1}}
		n.Server.Replicas = 1
	}, Warning, "replicated", first, "Sentinels watch it, and promote a replica when it fails (it has one replica)"},
	{"sentinels name a replica", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		e.Sentinels = []redisadmin.SentinelSays{{Sentinel: "s:26379", Master: first, Epoch: 1}}
		n.Server.Replica, n.Server.Master = true, "b:6379"
	}, Error, "replica", first, "The sentinels name it as the master, and it is a replica of b:6379"},
	{"a sentinel does not answer", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		e.Sentinels = []redisadmin.SentinelSays{{Sentinel: "s:26379", Err: errors.New("down")}, {Sentinel: "t:26379", Master: first}}
	}, Warning, "sentinel-silent", "s:26379", "does not say where the master is: down"},
	{"sentinels disagree", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		e.Sentinels = []redisadmin.SentinelSays{{Sentinel: "s:26379", Master: "b:6379", Epoch: 1}, {Sentinel: "t:26379", Master: first, Epoch: 2}}
	}, Warning, "sentinels-disagree", "", "s:26379 says b:6379 (epoch 1), t:26379 says a:6379 (epoch 2)"},
	{"a sentinel", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.Mode = "sentinel" }, Error, "sentinel", first, "sentinel"},
	{"of a cluster", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.Mode = "cluster" }, Error, "cluster", first, "cluster"},
	{"a cluster of one", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.Mode = "cluster" }, Warning, "cluster", first, "locks work"},
	{"a cluster of more", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Server.Mode, n.Failing = "cluster", []redisadmin.Failure{{Script: "acquire", Err: errors.New("MOVED")}}
	}, Error, "cluster", first, "does not work"},
	{"evicts", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Server.MaxMemory, n.Server.Eviction, n.Server.Evicted = 1<<30, "allkeys-lru", 7
	}, Error, "eviction", first, "allkeys-lru at 1 MiB of 1 GiB). It has evicted 7 keys"},
	{"full", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.MaxMemory = 1 << 20 }, Error, "memory-full", first, "1 MiB of 1 MiB"},
	{"nearly full", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.MaxMemory = 1<<20 + 1<<10 }, Warning, "memory-low", first, "almost full"},
	{"without a limit", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.SystemMemory = 1<<20 + 1 }, Warning, "memory-low", first, "without a limit"},
	{"a command is missing", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Lacking = []redisadmin.Lack{{Command: "pexpire", Says: "NOPERM"}}
	}, Error, "right-missing", first, "+pexpire"},
	{"messages cannot be pushed", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.PushErr = errDenied }, Warning, "waiters-poll", first, "poll instead (NOPERM"},
	{"replaced data is not reported", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.TrackingErr = errDenied }, Warning, "replacement-unseen", first, "connects (NOPERM"},
	{"alone, no word of replaced data", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.TrackingErr = errDenied }, Info, "replacement-unseen", first, "crash-safe"},
	{"keys are forbidden", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Lacking = []redisadmin.Lack{{Key: "{jobs/*}:*", Says: "NOPERM"}}
	}, Error, "key-forbidden", first, "{jobs/*}:*"},
	{"a script fails", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Failing = []redisadmin.Failure{{Script: "acquire", Err: errors.New("MISCONF")}}
	}, Error, "script-fails", first, "MISCONF"},
	{"TTL too long", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { e.TTL = 2 * time.Minute }, Error, "ttl-over-maximum", "", "2m0s is over the maximum of 1m0s"},
	{"TTL too short", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		e.TTL, e.NodeTimeout = 20*time.Millisecond, 20*time.Millisecond
	}, Warning, "ttl-too-short", "", "3.2ms"},
	{"a slow server", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Trip, n.Slowest = time.Second, time.Second }, Warning, "round-trip-over-timeout", first, "1s"},
	{"all slow", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		for i := range e.Nodes {
			e.Nodes[i].Trip = time.Second
		}
	}, Error, "round-trip-over-timeout", first, "1s"},
	{"sometimes slow", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Slowest = 200 * time.Millisecond }, Warning, "round-trip-near-timeout", first, "200ms"},
	{"clocks differ", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Ahead = -2 * time.Second }, Warning, "clocks-differ", "", "ahead of that of a:6379 by 2s"},
	{"the clock of this machine is behind", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		for i := range e.Nodes {
			e.Nodes[i].Ahead = 3 * time.Second
		}
	}, Warning, "clock-here", "", "behind that of the servers by about 3s"},
	{"the clock of this machine is ahead", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Ahead = -3 * time.Second }, Warning, "clock-here", "", "ahead of that of the servers"},
	{"in quarantine", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Mark.Quarantined, n.Mark.OpensIn, n.Mark.Why = true, 40*time.Second, "it was restarted"
	}, Warning, "quarantined", first, "it was restarted: it takes no part for another 40s"},
	{"too many in quarantine", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		for i := range e.Nodes {
			e.Nodes[i].Mark.Quarantined, e.Nodes[i].Mark.OpensIn = true, 40*time.Second
		}
	}, Error, "quarantined", first, "40s"},
	{"alone and restarted", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Server.Uptime, n.Server.Fsync = 20*time.Second, "everysec"
	}, Warning, "restarted-recently", first, "for another 40s"},
	{"no mark", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Mark = redisadmin.Mark{} }, Info, "restart-unseen", first, "up to 1m1s"},
	{"the mark of another run", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Server.RunID, n.Server.Fsync = "run-new", "everysec"
	}, Info, "restart-unseen", first, "No client has used the server"},
	{"the mark of a run that was not durable", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Server.RunID, n.Mark.Durable = "run-new", false
	}, Info, "restart-unseen", first, "No client has used the server"},
	{"the mark of another version", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Mark = redisadmin.Mark{Err: errors.New("its mark has version 3"), Version: "3"}
	}, Warning, "other-version", first, "its mark has version 3"},
	{"not what the URL says", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { e.FsyncAlways, n.Server.Fsync = true, "no" }, Error, "fsync-not-always", first, "appendfsync no"},
	{"cannot save", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.SaveFails = true }, Warning, "persistence-failing", first, "could not write"},
	{"alone, nothing on disk", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.AppendOnly = false }, Warning, "persistence-none", first, "two owners can then hold a lock"},
	{"nothing on disk", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.AppendOnly = false }, Info, "persistence-none", first, "quarantined for 1m1s"},
	{"snapshots", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Server.AppendOnly, n.Server.Snapshots = false, true
	}, Warning, "persistence-snapshots", first, "snapshot"},
	{"once a second", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.Fsync = "everysec" }, Warning, "persistence-everysec", first, "everysec"},
	{"when it writes to disk is not known", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.SettingsErr = errDenied }, Info, "persistence-unknown", first, "not known"},
	{"whether it writes to disk is not known", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Server.SettingsErr, n.Server.AppendOnly = errDenied, false
	}, Warning, "persistence-unknown", first, "snapshots is not known"},
	{"configuration is forbidden", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.SettingsErr = errDenied }, Info, "config-forbidden", first, "NOPERM"},
	{"INFO is forbidden", 1, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Server, n.ServerErr = redisadmin.Server{}, errDenied
	}, Info, "info-forbidden", first, "NOPERM"},
	{"INFO is forbidden and needed", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Server, n.ServerErr = redisadmin.Server{}, errDenied
	}, Error, "info-forbidden", first, "it is not used"},
	{"INFO is forbidden and not needed", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) {
		n.Server, n.ServerErr, e.FsyncAlways = redisadmin.Server{}, errDenied, true
	}, Info, "info-forbidden", first, "NOPERM"},
	{"endless lock", 3, odd(redisadmin.Endless, 1), Error, "lock-without-ttl", first, `key "k" (thing) never expires`},
	{"list", 3, odd(redisadmin.WrongType, 2), Error, "lock-of-wrong-type", first, `each of 2 keys, such as key "k" (thing),`},
	{"Redisson", 3, odd(redisadmin.Redisson, 1), Error, "redisson-lock", first, "Redisson"},
	{"redsync", 3, odd(redisadmin.Foreign, 1), Info, "foreign-lock", first, "another kind"},
	{"no counter", 3, odd(redisadmin.ForeignCounter, 1), Warning, "foreign-counter", first, "not a number"},
	{"keys not seen", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Keys.Err = errDenied }, Info, "keys-not-seen", first, "NOPERM"},
	{"keys partly seen", 3, func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Keys.Partial, n.Keys.Locks = true, 12 }, Info, "keys-partly-seen", first, "12 locks"},
}

func odd(o redisadmin.Oddity, count int) func(*redisadmin.Examination, *redisadmin.Examined) {
	return func(_ *redisadmin.Examination, n *redisadmin.Examined) {
		n.Keys.Odd = []redisadmin.OddKeys{{Oddity: o, Count: count, Examples: []redisadmin.OddKey{{Key: "k", Says: "thing"}}}}
	}
}

func TestRedisFindings(t *testing.T) {
	for _, c := range redisCases {
		t.Run(c.name, func(t *testing.T) {
			e := sound(c.nodes)
			c.make(&e, &e.Nodes[0])
			got := Redis(e)
			i := slices.IndexFunc(got, func(f Finding) bool { return f.Code == c.code && f.Node == c.node })
			if i < 0 {
				t.Fatalf("no %s about %q in %+v", c.code, c.node, got)
			}
			if f := got[i]; f.Severity != c.severity || !strings.Contains(f.Message, c.says) || f.Advice == "" {
				t.Errorf("%+v\nwant severity %v, text with %q, advice", f, c.severity, c.says)
			}
			if worst := Worst(got); worst != c.severity && c.code != "no-quorum" && len(got) == 1 {
				t.Errorf("the worst is %v, want %v", worst, c.severity)
			}
		})
	}
}

func TestSoundServersHaveNoFindings(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		if got := Redis(sound(n)); got == nil || len(got) != 0 {
			t.Errorf("%d sound servers: %+v, want an empty list", n, got)
		}
	}
	// Harmless states must not be reported.
	for name, make := range map[string]func(e *redisadmin.Examination, n *redisadmin.Examined){
		"a restart that forgot nothing": func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.RunID = "run-new" },
		"a policy without a limit":      func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.Eviction = "allkeys-lru" },
		"a clock that may be right": func(e *redisadmin.Examination, n *redisadmin.Examined) {
			n.Ahead, n.AheadError = 2*time.Second, 2*time.Second
		},
		"Valkey":             func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.Version = "7.2.4" },
		"an unknown version": func(e *redisadmin.Examination, n *redisadmin.Examined) { n.Server.Version = "next" },
	} {
		e := sound(3)
		make(&e, &e.Nodes[0])
		if got := Redis(e); len(got) != 0 {
			t.Errorf("%s: %+v, want no findings", name, got)
		}
	}
}

// A server that is loading reports that it appends nothing, whatever it is configured to do.
func TestLoadingHidesPersistence(t *testing.T) {
	for _, n := range []int{1, 3} {
		e := sound(n)
		e.FsyncAlways = true
		s := &e.Nodes[0].Server
		s.Loading, s.AppendOnly, s.Uptime = true, false, time.Second
		for _, f := range Redis(e) {
			if f.Code != "node-loading" && f.Code != "no-quorum" {
				t.Errorf("of %d servers: %+v, want only node-loading and no-quorum", n, f)
			}
		}
	}
}

func TestWorstFirst(t *testing.T) {
	e := sound(4)
	e.Nodes[0].Server.AppendOnly = false
	e.Nodes[1].Server.Replica = true
	e.Nodes[2].Server.AppendOnly = false
	e.Nodes[3].Server.Version = "3.2.0"
	var got []string
	for _, f := range Redis(e) {
		got = append(got, f.Severity.String()+" "+string(f.Code)+" "+f.Node)
	}
	want := []string{
		"error no-quorum ", "error replica b:6379", "error server-too-old d:6379", "warning even-nodes ",
		"info persistence-none a:6379", "info persistence-none c:6379",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}
