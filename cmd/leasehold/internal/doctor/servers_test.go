package doctor

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "s3cr3t-word"

// patient is for servers that are only slow because this machine is busy.
const patient = "connect_timeout=10s&node_timeout=5s&max_ttl=60s"

// real is a case that makes findings on servers that run.
type real struct {
	name string
	// prepare starts servers and returns the URL, or what it has after redis://.
	prepare func(t *testing.T) string
	scope   redisadmin.Scope
	want    string // the codes that have to be found, as severity:code
	not     string // the codes that must not
}

// one starts a server.
func one(args ...string) func(t *testing.T) string {
	return func(t *testing.T) string { return redistest.Start(t, args...).Addr() + "?" + patient }
}

// with starts a server and has it run commands.
func with(commands ...string) func(t *testing.T) string {
	return func(t *testing.T) string {
		s := redistest.Start(t)
		for _, c := range commands {
			s.Text(t, strings.Fields(c)...)
		}
		return s.Addr() + "?" + patient
	}
}

// user starts a server with a user who has rights.
func user(rights string, args ...string) func(t *testing.T) string {
	return func(t *testing.T) string {
		s := redistest.Start(t, args...)
		s.Text(t, append([]string{"ACL", "SETUSER", "u", "reset", "on", ">" + secret}, strings.Fields(rights)...)...)
		return "u:" + secret + "@" + s.Addr() + "?" + patient
	}
}

// three starts three servers that are known to have forgotten nothing.
func three(t *testing.T, args ...string) ([]*redistest.Server, string) {
	servers := redistest.StartN(t, 3, args...)
	return servers, servers[0].Addr() + "," + servers[1].Addr() + "," + servers[2].Addr() + "?" + patient
}

const locker = "&leasehold:to:* +evalsha +eval +get +mget +set +del +rpush +lindex +linsert +lrange +lrem +lpop +hset +hmget +hgetall +hdel +zadd +zrem +zscore +zrange +pttl +pexpire +time +info +client|tracking +publish +subscribe "

var reals = []real{
	{name: "sound", prepare: func(t *testing.T) string {
		_, url := three(t, "--appendonly", "yes", "--appendfsync", "always")
		return url
	}, want: "warning:same-host", not: "persistence no-quorum quarantined restart right key script info config"},
	{name: "two of three are down", prepare: func(t *testing.T) string {
		servers, url := three(t)
		servers[0].Kill()
		servers[2].Kill()
		return url
	}, want: "error:no-quorum error:node-unreachable info:persistence-none"},
	{name: "one of three is down", prepare: func(t *testing.T) string {
		servers, url := three(t)
		servers[1].Kill()
		return url
	}, want: "warning:node-unreachable", not: "no-quorum"},
	{name: "one of three is frozen", prepare: func(t *testing.T) string {
		servers, url := three(t)
		if err := servers[1].Freeze(); err != nil {
			t.Fatal(err)
		}
		return strings.Replace(url, "connect_timeout=10s", "connect_timeout=3s", 1)
	}, want: "warning:node-silent", not: "no-quorum"},
	{name: "replaced data is not reported", prepare: user("~* " + strings.Replace(locker, "+client|tracking ", "", 1)), want: "info:replacement-unseen", not: "waiters-poll"},
	{name: "no password", prepare: one("--requirepass", secret), want: "error:login-refused"},
	{name: "a wrong password", prepare: func(t *testing.T) string {
		return ":" + secret + "@" + redistest.Start(t, "--requirepass", "another").Addr()
	}, want: "error:login-refused"},
	{name: "loading", prepare: func(t *testing.T) string {
		s := redistest.Start(t, "--enable-debug-command", "yes", "--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024")
		s.Text(t, "DEBUG", "POPULATE", "20000")
		s.Text(t, "SAVE")
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := s.RestartLoading(); err != nil {
			t.Fatal(err)
		}
		return s.Addr() + "?" + patient
	}, want: "error:node-loading", not: "script-fails keys-not-seen persistence fsync restarted"},
	{name: "one server twice", prepare: func(t *testing.T) string {
		servers := redistest.StartN(t, 2)
		return servers[0].Addr() + "," + servers[1].Addr() + "," + faultproxy.New(t, servers[0].Addr()).Addr() + "?" + patient
	}, want: "error:same-server"},
	{name: "two servers", prepare: func(t *testing.T) string {
		servers := redistest.StartN(t, 2)
		return servers[0].Addr() + "," + servers[1].Addr() + "?" + patient
	}, want: "warning:even-nodes"},
	{name: "master and replica", prepare: func(t *testing.T) string {
		master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
		host, port, _ := strings.Cut(master.Addr(), ":")
		replica := redistest.Start(t, "--replicaof", host+" "+port)
		eventually.True(t, "the replica follows", func() bool {
			return strings.Contains(replica.Text(t, "INFO", "replication"), "master_link_status:up") &&
				strings.Contains(master.Text(t, "INFO", "replication"), "connected_slaves:1")
		})
		return master.Addr() + "," + replica.Addr() + "?" + patient
	}, want: "error:replica warning:replicated", not: "script-fails"},
	{name: "sentinel", prepare: func(t *testing.T) string { return startSentinel(t) + "?" + patient }, want: "error:sentinel", not: "script key right"},
	{name: "sentinels of different masters", prepare: func(t *testing.T) string {
		down := redistest.Start(t)
		down.Kill()
		hosts := []string{down.Addr()}
		for _, master := range redistest.StartN(t, 2) {
			host, port, _ := net.SplitHostPort(master.Addr())
			s, err := redistest.Launch(redistest.Options{Dir: t.TempDir(), Sentinel: []string{"sentinel monitor m " + host + " " + port + " 1"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			hosts = append(hosts, s.Addr())
		}
		return "redis-sentinel://" + strings.Join(hosts, ",") + "?master=m&" + patient
	}, want: "warning:sentinel-silent warning:sentinels-disagree warning:replicated", not: "no-quorum node script"},
	{name: "cluster", prepare: one("--cluster-enabled", "yes"), want: "error:cluster", not: "script-fails"},
	{name: "a cluster of one", prepare: func(t *testing.T) string {
		s := redistest.Start(t, "--cluster-enabled", "yes")
		s.Text(t, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
		eventually.True(t, "the cluster is up", func() bool { return strings.Contains(s.Text(t, "CLUSTER", "INFO"), "cluster_state:ok") })
		return s.Addr() + "?" + patient
	}, want: "warning:cluster"},
	{name: "eviction", prepare: one("--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"), want: "error:eviction"},
	{name: "memory full", prepare: func(t *testing.T) string {
		s := redistest.Start(t)
		s.Text(t, "SETRANGE", "ballast", "8000000", "x")
		s.Text(t, "CONFIG", "SET", "maxmemory", "4mb")
		return s.Addr() + "?" + patient
	}, want: "error:memory-full", not: "script-fails memory-low"},
	{name: "memory low", prepare: func(t *testing.T) string {
		s := redistest.Start(t)
		s.Text(t, "SETRANGE", "ballast", "100000000", "x")
		used := 0
		for l := range strings.Lines(s.Text(t, "INFO", "memory")) {
			if v, ok := strings.CutPrefix(l, "used_memory:"); ok {
				used, _ = strconv.Atoi(strings.TrimSpace(v))
			}
		}
		s.Text(t, "CONFIG", "SET", "maxmemory", strconv.Itoa(used/20*21)) // 5 % more
		return s.Addr() + "?" + patient
	}, want: "warning:memory-low", not: "memory-full"},
	{name: "a user without PEXPIRE", prepare: user("~* " + strings.Replace(locker, "+pexpire ", "", 1)), want: "error:right-missing", not: "key-forbidden"},
	{name: "a user without EVAL", prepare: user("~* " + strings.Replace(locker, "+eval ", "", 1)), want: "error:right-missing"},
	{name: "a user who may not listen", prepare: user("~* " + strings.Replace(locker, "+subscribe ", "", 1)), want: "warning:waiters-poll", not: "right-missing script-fails"},
	{name: "a user without channels", prepare: user("~* " + strings.Replace(locker, "&leasehold:to:* ", "", 1)), want: "warning:waiters-poll", not: "right-missing script-fails"},
	{name: "a user for some keys", prepare: user("~jobs/* ~{jobs/*}:* " + locker), want: "error:key-forbidden", not: "right-missing waiters-poll"},
	{name: "a user for some keys, and asked about them", prepare: user("~jobs/* ~{jobs/*}:* " + locker), scope: redisadmin.Scope{Prefix: "jobs/"},
		want: "info:keys-not-seen info:config-forbidden", not: "key-forbidden right-missing"},
	{name: "a user without INFO", prepare: user("~* " + strings.Replace(locker, "+info ", "", 1)), want: "info:info-forbidden", not: "right-missing"},
	{name: "a user without CONFIG", prepare: user("~* "+locker, "--appendonly", "yes"), want: "info:persistence-unknown info:config-forbidden"},
	{name: "saving fails", prepare: func(t *testing.T) string {
		dir := t.TempDir()
		s := redistest.Start(t, "--save", "3600 1000000", "--dir", dir)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		s.Text(t, "BGSAVE")
		eventually.True(t, "saving has failed", func() bool { return strings.Contains(s.Text(t, "INFO", "persistence"), "rdb_last_bgsave_status:err") })
		return s.Addr() + "?" + patient
	}, want: "error:script-fails warning:persistence-failing warning:persistence-snapshots"},
	{name: "a long TTL", prepare: one(), scope: redisadmin.Scope{TTL: 2 * time.Minute}, want: "error:ttl-over-maximum"},
	{name: "a short TTL", prepare: one(), scope: redisadmin.Scope{TTL: 10 * time.Millisecond}, want: "warning:ttl-too-short"},
	{name: "far away", prepare: func(t *testing.T) string {
		p := faultproxy.New(t, redistest.Start(t).Addr())
		p.Delay(20 * time.Millisecond)
		return p.Addr() + "?connect_timeout=10s&node_timeout=30ms"
	}, want: "error:round-trip-over-timeout"},
	{name: "rather far away", prepare: func(t *testing.T) string {
		p := faultproxy.New(t, redistest.Start(t).Addr())
		p.Delay(100 * time.Millisecond)
		return p.Addr() + "?connect_timeout=10s&node_timeout=390ms"
	}, want: "warning:round-trip-near-timeout"},
	{name: "in quarantine", prepare: func(t *testing.T) string {
		servers, url := three(t)
		for _, s := range servers[:2] {
			s.Text(t, "DEL", redistest.Mark)
		}
		s, err := redisstore.Open(t.Context(), "redis://"+url, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: "a", Owner: store.NewOwner(), TTL: time.Minute}}) // marks them again
		eventually.True(t, "both are marked", func() bool {
			return servers[0].Text(t, "EXISTS", redistest.Mark)+servers[1].Text(t, "EXISTS", redistest.Mark) == "11"
		})
		return url
	}, want: "error:no-quorum error:quarantined"},
	{name: "restarted while no client was connected", prepare: func(t *testing.T) string {
		servers, url := three(t)
		if err := servers[0].Restart(); err != nil {
			t.Fatal(err)
		}
		return url
	}, want: "info:restart-unseen"},
	{name: "in a list with others", prepare: func(t *testing.T) string {
		servers, url := three(t)
		s, err := redisstore.Open(t.Context(), "redis://"+url, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: "a", Owner: store.NewOwner(), TTL: time.Minute}}) // writes the list to them
		eventually.True(t, "all have the list", func() bool {
			for _, s := range servers {
				if !strings.Contains(s.Text(t, "GET", redistest.Mark), servers[0].Addr()) {
					return false
				}
			}
			return true
		})
		return strings.Replace(url, servers[2].Addr(), redistest.Start(t).Addr(), 1)
	}, want: "error:other-list error:no-quorum"},
	{name: "another version", prepare: func(t *testing.T) string {
		servers, url := three(t)
		for _, s := range servers[:2] {
			s.Text(t, "SET", redistest.Mark, "1700000000000000 - - restarted:1 -")
		}
		return url
	}, want: "error:other-version error:no-quorum", not: "restart-unseen quarantined"},
	{name: "two lists", prepare: func(t *testing.T) string {
		servers, url := three(t)
		return url + "&next=" + servers[0].Addr() + "," + servers[1].Addr() + "," + redistest.Start(t).Addr()
	}, want: "info:list-being-replaced", not: "other-list no-quorum even-nodes"},
	{name: "one, just started", prepare: one(), want: "warning:restarted-recently warning:persistence-none", not: "even-nodes same-host restart-unseen"},
	{name: "one that is durable", prepare: one("--appendonly", "yes", "--appendfsync", "always"), not: "persistence restart"},
	{name: "one that is durable up to a second", prepare: one("--appendonly", "yes"), want: "warning:persistence-everysec"},
	{name: "asserted", prepare: func(t *testing.T) string { return one("--appendonly", "yes")(t) + "&fsync=always" }, want: "error:fsync-not-always"},
	{name: "an endless lock", prepare: with("SET {a}:token 5 EX 100", "SET a mine"), want: "error:lock-without-ttl"},
	{name: "a list", prepare: with("SET {a}:token 5 EX 100", "LPUSH a x"), want: "error:lock-of-wrong-type"},
	{name: "Redisson", prepare: with("HSET jobs/a 0b16b1f0-5a25-4b5c-a22b-3f5b0b1c8f6e:31 1", "PEXPIRE jobs/a 100000"), scope: redisadmin.Scope{Prefix: "jobs/"},
		want: "error:redisson-lock", not: "lock-of-wrong-type lock-without-ttl"},
	{name: "redsync", prepare: with("SET jobs/a bm90IGEgcmVhbCBrZXkhIQ== PX 100000"), scope: redisadmin.Scope{Prefix: "jobs/"}, want: "info:foreign-lock", not: "lock-without-ttl"},
	{name: "keys of others", prepare: with("SET {user}:token s3ss10n", "SADD {cart}:token x", "SET {user}:name joe", "SET joe x"), want: "warning:foreign-counter", not: "lock-without lock-of foreign-lock"},
	{name: "a sound lock", prepare: func(t *testing.T) string {
		s := redistest.Start(t)
		s.Text(t, "SET", "{a}:token", "5", "EX", "100")
		s.Text(t, "SET", "a", `owner {"host":"h"}`, "PX", "100000")
		return s.Addr() + "?" + patient
	}, not: "lock foreign counter"},
	{name: "many keys", prepare: func(t *testing.T) string {
		s := redistest.Start(t)
		s.Text(t, "EVAL", `for i = 1, 5000 do redis.call('SET', '{' .. i .. '}:token', '5', 'EX', '1000') end`, "0")
		return s.Addr() + "?" + patient
	}, scope: redisadmin.Scope{MaxLocks: 10}, want: "info:keys-partly-seen"},
}

// Problems of running servers are found, and no key changes.
func TestRealServers(t *testing.T) {
	var mu sync.Mutex
	reached := map[Code]bool{}
	t.Run("all", func(t *testing.T) {
		for _, c := range reals {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				url := c.prepare(t)
				if !strings.Contains(url, "://") {
					url = "redis://" + url
				}
				if c.scope.TTL == 0 {
					c.scope.TTL = 30 * time.Second
				}
				before := contents(t, url)
				e, err := redisadmin.Examine(t.Context(), url, nil, c.scope)
				if err != nil {
					t.Fatal(err)
				}
				found := Redis(e)
				got := map[string]bool{}
				mu.Lock()
				for _, f := range found {
					got[f.Severity.String()+":"+string(f.Code)] = true
					reached[f.Code] = true
					if strings.Contains(fmt.Sprintf("%+v", f), secret) {
						t.Errorf("%+v shows the password", f)
					}
				}
				mu.Unlock()
				for _, want := range strings.Fields(c.want) {
					if !got[want] {
						t.Errorf("the finding %s is missing", want)
					}
				}
				for code := range got {
					for _, not := range strings.Fields(c.not) {
						if _, code, _ := strings.Cut(code, ":"); strings.HasPrefix(code, not) {
							t.Errorf("found %s, want no code that starts with %q", code, not)
						}
					}
				}
				if t.Failed() {
					for _, f := range found {
						t.Logf("%+v", f)
					}
				}
				if after := contents(t, url); !maps.Equal(before, after) {
					t.Errorf("keys before %v\nand after %v\nwant the same", before, after)
				}
			})
		}
	})
	// Old servers, and clocks that differ, cannot be started here.
	absent := []Code{"server-too-old", "clocks-differ", "clock-here"}
	for _, c := range redisCases {
		if !reached[c.code] && !slices.Contains(absent, c.code) {
			t.Errorf("no case leads to the finding %s, want one", c.code)
		}
	}
}

// contents returns the keys of every server of the URL that answers.
func contents(t *testing.T, url string) map[string]string {
	t.Helper()
	_, hosts, _ := strings.Cut(url, "://")
	hosts, _, _ = strings.Cut(hosts, "?")
	hosts = hosts[strings.LastIndex(hosts, "@")+1:]
	all := map[string]string{}
	for addr := range strings.SplitSeq(hosts, ",") {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if v, err := localredis.Do(ctx, addr, "KEYS", "*"); err == nil {
			keys := strings.Fields(localredis.Text(v))
			slices.Sort(keys)
			all[addr] = strings.Join(keys, " ")
		}
		cancel()
	}
	return all
}

// startSentinel starts a sentinel that watches nothing, and returns its address.
func startSentinel(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		path, err = exec.LookPath("valkey-server")
	}
	if err != nil {
		t.Fatal(localredis.ErrNotInstalled)
	}
	for range 10 { // the port may be taken by another process meanwhile
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		l.Close()
		_, port, _ := net.SplitHostPort(addr)
		conf := filepath.Join(t.TempDir(), "sentinel.conf")
		if err := os.WriteFile(conf, []byte("port "+port+"\nbind 127.0.0.1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := child.Start(exec.Command(path, conf, "--sentinel"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		for {
			v, err := localredis.Do(t.Context(), addr, "INFO", "server")
			if err == nil && strings.Contains(localredis.Text(v), "process_id:"+strconv.Itoa(p.PID())) {
				return addr
			}
			select {
			case <-p.Done():
			case <-time.After(5 * time.Millisecond):
				continue
			}
			break
		}
	}
	t.Fatal("no sentinel starts")
	return ""
}
