package redisdoor

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

const (
	deleteOwn     = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
	extendOwnText = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`
)

// Two clients take turns, by the commands that most libraries send.
func TestClientsTakeTurns(t *testing.T) {
	t.Parallel()
	address, _ := open(t, Options{})
	a, b := dial(t, address), dial(t, address)
	a.wants("(nil)", "GET lock")
	a.wants("(integer) -2", "PTTL lock")
	a.wants("OK", "SET lock a NX PX 60000")
	b.wants("(nil)", "SET lock b NX PX 60000")
	b.wants(`"a"`, "GET lock")
	b.wants(`"a"`, "SET lock b NX GET PX 60000")
	b.wants("(integer) 1", "EXISTS lock other")
	b.wants("(integer) 60", "TTL lock")
	b.wants("(integer) 0", "EVAL", deleteOwn, "1", "lock", "b")
	b.wants("(integer) 0", "EVAL", extendOwnText, "1", "lock", "b", "90000")
	b.wants("(integer) 0", "DELIFEQ lock b")
	b.wants("(error) ERR another client holds the lock", "SET lock b XX PX 60000")
	a.wants("(integer) 1", "EVAL", extendOwnText, "1", "lock", "a", "90000")
	b.wants("(integer) 90", "TTL lock")
	a.wants("OK", "SET lock a XX PX 100000")
	a.wants("OK", "SET lock a IFEQ a PX 120000")
	b.wants("(nil)", "SET lock b IFEQ b PX 120000")
	a.wants("(error) ERR the lease of lock", "EVAL", extendOwnText, "1", "lock", "a", "1000")
	a.wants("(integer) 1", "EVAL", deleteOwn, "1", "lock", "a")
	a.wants("(integer) 0", "EVAL", deleteOwn, "1", "lock", "a")
	b.wants("(nil)", "SET lock b GET NX PX 60000")
	b.wants("(integer) 1", "DELEX lock IFEQ b")
	b.wants("(nil)", "SET lock b XX PX 60000")
}

// A value that is the same for all clients excludes them from each other all the same, as SET
// NX of Redis does.
func TestSameValueExcludes(t *testing.T) {
	t.Parallel()
	address, _ := open(t, Options{})
	a, b := dial(t, address), dial(t, address)
	a.wants("OK", "SET lock 1 NX EX 60")
	b.wants("(nil)", "SET lock 1 NX EX 60")
	a.wants("(nil)", "SET lock 1 NX EX 60")
}

// A lease ends by itself, and nobody renews it.
func TestLeasesEndByThemselves(t *testing.T) {
	t.Parallel()
	address, _ := open(t, Options{})
	a := dial(t, address)
	a.wants("OK", "SET lock a NX PX 1")
	for a.says("SET lock b NX PX 60000") != "OK" {
		time.Sleep(time.Millisecond)
	}
	a.wants("(integer) 0", "DELIFEQ lock a")
	a.wants(`"b"`, "GET lock")
}

// Another server of the store knows what a client holds by the value alone.
func TestServersShareLocks(t *testing.T) {
	t.Parallel()
	one, st := open(t, Options{})
	two, _ := open(t, Options{Store: st})
	a, b := dial(t, one), dial(t, two)
	values := []string{"a", "", "1.5", "\x00\xff \r\n", "redis:x:y", "%41", strings.Repeat("v", 237), strings.Repeat("\x80", 176)}
	for _, v := range values {
		a.wants("OK", "SET", "lock", v, "NX", "PX", "60000")
		b.wants(quoted(v), "GET", "lock")
		b.wants("(integer) 0", "EVAL", deleteOwn, "1", "lock", v+"x")
		b.wants("(integer) 1", "EVAL", extendOwnText, "1", "lock", v, "90000")
		b.wants("(integer) 1", "EVAL", deleteOwn, "1", "lock", v)
		a.wants("(integer) 0", "EVAL", extendOwnText, "1", "lock", v, "90000")
	}
	// A lease of the same value, granted elsewhere after the one that this server remembers.
	a.wants("OK", "SET lock v NX PX 60000")
	b.wants("(integer) 1", "DELIFEQ lock v")
	b.wants("OK", "SET lock v NX PX 60000")
	a.wants("(integer) 1", "EVAL", extendOwnText, "1", "lock", "v", "90000")
	a.wants("(integer) 1", "DELIFEQ lock v")
	a.wants("(error) ERR the value has", "SET", "lock", strings.Repeat("v", 238), "NX", "PX", "60000")
	a.wants("(error) ERR the value has", "SET", "lock", strings.Repeat("\x80", 177), "NX", "PX", "60000")
}

func quoted(s string) string {
	c := reply{kind: '$', text: s}
	var b strings.Builder
	b.Write(c.append(nil, 2))
	got, _ := readReply(newReader(b.String()))
	return got
}

// Locks that others hold are held, and their values are nobody's. What a client of the door holds
// is a lease like any other.
func TestBesideOthers(t *testing.T) {
	t.Parallel()
	address, st := open(t, Options{})
	a := dial(t, address)
	theirs := store.Lease{Name: "lock", Owner: "x", TTL: time.Minute}
	if _, err := st.Acquire(t.Context(), store.AcquireRequest{Lease: theirs}); err != nil {
		t.Fatal(err)
	}
	a.wants("(nil)", "SET lock x NX PX 60000")
	a.wants(`"leasehold:x"`, "GET lock")
	a.wants(`"leasehold:x"`, "SET lock x NX GET PX 60000")
	a.wants("(integer) 0", "DELIFEQ lock x")
	a.wants("(integer) 0", "EVAL", extendOwnText, "1", "lock", "x", "90000")
	if err := st.Release(t.Context(), store.ReleaseRequest{Lease: theirs}); err != nil {
		t.Fatal(err)
	}
	a.wants("OK", "CLIENT SETINFO LIB-NAME redis-py")
	a.wants("OK", "SET lock x NX PX 60000")
	is, err := st.Inspect(t.Context(), "lock")
	if err != nil || !is.Held || is.Token == 0 || !strings.HasSuffix(is.Holder.Owner, ":x") || is.Holder.Purpose != "redis-py" || !is.Holder.Unrenewed {
		t.Fatalf("%+v, %v", is, err)
	}
	if _, err := st.Acquire(t.Context(), store.AcquireRequest{Lease: theirs}); err == nil {
		t.Error("two holders")
	}
	// An operator breaks the lease: its holder cannot extend it, and sees so. It can release it.
	if _, err := st.BreakLease(t.Context(), store.BreakRequest{Name: "lock", Owner: is.Holder.Owner, Token: is.Token, Reason: "it hangs"}); err != nil {
		t.Fatal(err)
	}
	a.wants("(integer) 0", "EVAL", extendOwnText, "1", "lock", "x", "90000")
	if got := a.says("GET lock"); !strings.HasPrefix(got, `"leasehold:redis:`) {
		t.Error(got)
	}
	a.wants("(integer) 1", "DELIFEQ lock x")
	a.wants("(nil)", "GET lock")
	// A semaphore is no lock of SET NX.
	shared := store.Lease{Name: "pool", Owner: "y", TTL: time.Minute, Kind: store.Semaphore(2)}
	if _, err := st.Acquire(t.Context(), store.AcquireRequest{Lease: shared}); err != nil {
		t.Fatal(err)
	}
	a.wants("(error) WRONGTYPE", "SET pool x NX PX 60000")
	a.wants(`"leasehold:y"`, "GET pool")
}

// The server refuses commands that it does not serve, and says what it is.
func TestRefusals(t *testing.T) {
	t.Parallel()
	address, st := open(t, Options{})
	c, resp3 := dial(t, address), dial(t, address)
	resp3.says("HELLO 3")
	for _, words := range []string{
		"KEYS *", "DEL lock", "SET lock v", "SET lock v NX", "SET lock v PX 100", "SET lock v NX PX 0", "SET lock v NX PX -1",
		"SET lock v NX PX 99999999999999999999", "SET lock v NX PX 9223372036854775807", "SET lock v NX PX 9223372036854", "SET lock v NX PX x", "SET lock v NX PX",
		"SET lock v NX KEEPTTL", "SET lock v NX XX PX 1000", "SET lock v IFEQ w PX 1000", "SETNX lock v", "EXPIRE lock 10", "EVAL return 0",
		"EVAL x 1 lock", "EVAL return 2 a b c", "EVALSHA", "WATCH lock", "SUBSCRIBE x", "CLUSTER SLOTS", "SELECT 1", "CLIENT TRACKING ON",
		"SCRIPT LOAD x", "SCRIPT FLUSH", "CONFIG GET *", "GET", "GET a b", "AUTH x", "HELLO 4", "HELLO 3 AUTH default x", "FLUSHALL",
		"SET leasehold:x v NX PX 1000", "DELEX lock", "DELEX lock IFNE v", "OBJECT ENCODING lock", "SET lock v NX PXAT 1", "nonsense",
		"DEBUG SLEEP 10", "SHUTDOWN", "REPLICAOF a 1", "MONITOR", "SYNC",
	} {
		got := c.says(words)
		isUnknown := strings.Contains(got, "unknown command")
		if !strings.HasPrefix(got, "(error) ") || isUnknown && !strings.Contains(got, "this is leasehold serve") {
			t.Errorf("%s: %s", words, got)
		}
		if other := resp3.says(words); other != got && !strings.HasPrefix(words, "HELLO") {
			t.Errorf("%s: %s, and in version 3 of the protocol %s", words, got, other)
		}
	}
	c.wants("(error) NOSCRIPT", "EVALSHA 0000000000000000000000000000000000000000 1 lock v")
	if got := c.says("KEYS *"); !strings.Contains(got, "leasehold serve") || !strings.Contains(got, "leasehold ls") {
		t.Error(got)
	}
	for name, source := range map[string]string{
		"Redisson":           `if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return nil; end; return redis.call('pttl', KEYS[1]);`,
		"Spring Integration": `local lockClientId = redis.call('GET', KEYS[1]) if lockClientId == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return true elseif not lockClientId then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return true end return false`,
	} {
		if got := c.says("EVAL", source, "1", "lock", "60000", "v"); !strings.Contains(got, "does not know the script: this is leasehold serve") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if all, err := st.List(t.Context(), ""); err != nil || len(all) > 0 {
		t.Errorf("the refused commands left %v, %v", all, err)
	}
}

// Nothing between a MULTI and its EXEC is done, since the client takes its transaction for
// failed.
func TestNothingOfATransactionIsDone(t *testing.T) {
	t.Parallel()
	address, _ := open(t, Options{})
	c := dial(t, address)
	c.send(encode("MULTI") + encode("SET", "lock", "v", "NX", "PX", "60000") + encode("PING") + encode("EXEC") + encode("GET", "lock"))
	for _, want := range []string{"(error) ERR unknown command 'multi': this is leasehold serve", "(error) ERR nothing was done", "(error) ERR nothing was done", "(error) EXECABORT", "(nil)"} {
		if got := c.receive(); !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// What clients say when they connect is answered as Redis does.
func TestGreetings(t *testing.T) {
	t.Parallel()
	address, _ := open(t, Options{})
	c := dial(t, address)
	c.wants("PONG", "PING")
	c.wants(`"x"`, "PING x")
	c.wants(`"x"`, "ECHO x")
	c.wants("OK", "SELECT 0")
	c.wants("OK", "CLIENT SETNAME worker")
	c.wants(`"worker"`, "CLIENT GETNAME")
	c.wants("OK", "client setinfo lib-ver 1.2")
	c.wants("[]", "COMMAND DOCS")
	if got := c.says("INFO"); !strings.Contains(got, "loading:0") || !strings.Contains(got, "role:master") {
		t.Error(got)
	}
	if got := c.says("HELLO 2"); !strings.Contains(got, `"proto" (integer) 2`) {
		t.Error(got)
	}
	c.send(encode("HELLO", "3", "SETNAME", "other"))
	if line, err := c.in.ReadString('\n'); err != nil || line != "%7\r\n" {
		t.Errorf("%q, %v", line, err)
	}
	for range 14 {
		if _, err := readReply(c.in); err != nil {
			t.Fatal(err)
		}
	}
	c.send(encode("GET", "lock"))
	if line, err := c.in.ReadString('\n'); err != nil || line != "_\r\n" {
		t.Errorf("%q, %v", line, err)
	}
	c.wants("OK", "QUIT")
	if got := c.receive(); !strings.HasPrefix(got, "closed") {
		t.Error(got)
	}
}

// Rights are those of HTTP, by the token that AUTH gives.
func TestRightsOverRedis(t *testing.T) {
	t.Parallel()
	f := rightsFile(t, `ci "rules":[{"prefix":"ci/","rights":["look","lock"]},{"prefix":"","rights":["look"]}]`, `blind "rules":[{"prefix":"","rights":["lock"]}]`)
	address, st := open(t, Options{Rights: f})
	c := dial(t, address)
	c.wants("(error) NOAUTH", "GET ci/x")
	c.wants("(error) NOAUTH", "HELLO 3")
	c.wants("(error) NOAUTH", "PING")
	c.wants("(error) WRONGPASS", "AUTH wrong")
	c.wants("(error) WRONGPASS", "HELLO 3 AUTH default wrong")
	c.wants("(error) NOAUTH", "SET ci/x v NX PX 60000")
	c.wants("OK", "AUTH default ci")
	c.wants("OK", "SET ci/x v NX PX 60000")
	c.wants("(error) NOPERM", "SET x v NX PX 60000")
	c.wants("(nil)", "GET x")
	c.wants("(error) NOPERM", "EVAL", deleteOwn, "1", "x", "v")
	b := dial(t, address)
	if got := b.says("HELLO 2 AUTH any blind"); strings.HasPrefix(got, "(error)") {
		t.Error(got)
	}
	b.wants("OK", "SET x v NX PX 60000")
	b.wants("(error) NOPERM", "GET x")
	b.wants("(error) NOPERM", "EXISTS y x")
	b.wants("(error) NOPERM", "SET x v NX GET PX 60000")
	if is, err := st.Inspect(t.Context(), "x"); err != nil || is.Holder.Purpose != "(client blind)" {
		t.Errorf("%+v, %v", is, err)
	}
	b.wants("(error) WRONGPASS", "AUTH", "")
	b.wants("(integer) 1", "DELIFEQ x v")
	b.wants("RESET", "RESET")
	b.wants("(error) NOAUTH", "PING")

	only, _ := open(t, Options{ReadOnly: true})
	r := dial(t, only)
	r.wants("(nil)", "GET x")
	r.wants("(error) NOPERM", "SET x v NX PX 60000")
}

// A client that does not say who it is is cut off, and one that did is not.
func TestUnknownClientsAreCutOff(t *testing.T) {
	t.Parallel()
	address, _ := open(t, Options{Rights: rightsFile(t, `ci "rules":[{"prefix":"","rights":["look"]}]`), Patience: 300 * time.Millisecond})
	known := dial(t, address)
	known.wants("OK", "AUTH ci")
	if got := dial(t, address).receive(); !strings.HasPrefix(got, "closed") {
		t.Error(got)
	}
	known.wants("PONG", "PING")
	unknown, until := dial(t, address), time.Now().Add(20*time.Second)
	for got := ""; !strings.HasPrefix(got, "closed"); got = unknown.says("PING") {
		if time.Now().After(until) {
			t.Fatal("commands that are refused keep the connection")
		}
	}
}

// Replies come in the order of the commands, whatever the order in which the store answers, and
// commands about one lock are done in order.
func TestPipelines(t *testing.T) {
	t.Parallel()
	for name, e := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := store.New(e)
			t.Cleanup(func() { st.Close() })
			address, _ := open(t, Options{Store: st})
			c := dial(t, address)
			const n = 5000
			var b strings.Builder
			for range n {
				b.WriteString(encode("SET", "lock", "v", "NX", "PX", "60000") + encode("PING") + encode("GET", "other") + encode("DELIFEQ", "lock", "v") + encode("EXISTS", "lock", "other"))
			}
			go c.send(b.String())
			for i := range n {
				for _, want := range []string{"OK", "PONG", "(nil)", "(integer) 1", "(integer) 0"} {
					if got := c.receive(); got != want {
						t.Fatalf("%d: got %s, want %s", i, got, want)
					}
				}
			}
		})
	}
}

// A client that has said all and closes its half of the connection is still answered.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	address, _ := open(t, Options{})
	c := dial(t, address)
	c.send(encode("SET", "lock", "v", "NX", "PX", "60000") + encode("GET", "lock"))
	if err := c.nc.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"OK", `"v"`, "closed: EOF"} {
		if got := c.receive(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Bytes that are no command of a lock client end the connection, and its client sees why.
func TestWrongBytes(t *testing.T) {
	t.Parallel()
	address, _ := open(t, Options{})
	for _, raw := range []string{
		"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "PING\r\n", "*1\r\n:1\r\n", "*1\r\n$-1\r\n", "*65\r\n", "*1\r\n$70000\r\n", "*x\r\n", "*1\r\n$1\r\nab\r\n",
		">1\r\n$1\r\na\r\n", "*2\r\n*1\r\n$1\r\na\r\n$1\r\nb\r\n", "*-2\r\n", "*99999999999999999999\r\n", "*1" + strings.Repeat("0", 5000) + "\r\n",
		"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$67108864\r\n" + strings.Repeat("x", 64<<20),
	} {
		c := dial(t, address)
		go c.nc.Write([]byte(raw)) // the server need not read it all
		got := c.receive()
		isLong := len(raw) > 64<<20 || strings.Contains(raw, "$70000")
		if !strings.HasPrefix(got, "(error) ERR Protocol error") || isLong && !strings.Contains(got, "this server keeps locks") {
			t.Errorf("%.60q: %s", raw, got)
		}
		if got := c.receive(); !strings.HasPrefix(got, "closed") {
			t.Errorf("%.60q: %s", raw, got)
		}
	}
	c := dial(t, address) // what Redis ignores
	c.send("*0\r\n*-1\r\n")
	c.wants("PONG", "PING")
}

// A client that does not read its replies is cut off.
func TestSlowReadersAreCutOff(t *testing.T) {
	t.Parallel()
	address, _ := open(t, Options{Patience: 100 * time.Millisecond})
	c := dial(t, address)
	ping := strings.Repeat(encode("ECHO", strings.Repeat("x", 10_000)), 100)
	for {
		c.nc.SetWriteDeadline(time.Now().Add(20 * time.Second))
		if _, err := c.nc.Write([]byte(ping)); err != nil {
			if e, ok := err.(net.Error); ok && e.Timeout() {
				t.Error("still connected")
			}
			break
		}
	}
}

// When the server ends, commands that it has begun are answered, idle connections are closed,
// and leases stay.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	st := memstore.New(nil)
	defer st.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- New(Options{Store: st}).Serve(ctx, l, 20*time.Second) }()
	c, idle := dial(t, l.Addr().String()), dial(t, l.Addr().String())
	idle.wants("PONG", "PING")
	c.wants("OK", "SET lock v NX PX 60000")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := idle.receive(); !strings.HasPrefix(got, "closed") {
		t.Error(got)
	}
	if is, err := st.Inspect(t.Context(), "lock"); err != nil || !is.Held {
		t.Errorf("%+v, %v", is, err)
	}
}

// If the store gives no answer, the reply is an error, and never one that a client could take for
// a lock that is free or taken.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	st, err := redisstore.Open(t.Context(), "redis://"+redis.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	address, _ := open(t, Options{Store: st})
	c := dial(t, address)
	c.wants("OK", "SET lock v NX PX 60000")
	c.wants(`"v"`, "GET lock")
	c.wants("(integer) 1", "EVAL", extendOwnText, "1", "lock", "v", "70000")
	c.wants("OK", "SET other v NX PX 60000")
	c.wants("(integer) 1", "DELIFEQ other v")
	c.wants("(nil)", "GET other")
	redis.Kill()
	for _, words := range []string{"SET lock v NX PX 60000", "SET other v NX GET PX 60000", "SET lock v XX PX 60000", "GET lock", "GET other", "PTTL lock", "EXISTS lock other", "DELIFEQ lock v", "DELIFEQ other v", "EVALSHA 9f614a785a5f9ae8c6396c6b4bf94d2087342603 1 other v 60000"} {
		if got := c.says(words); !strings.HasPrefix(got, "(error) ERR ") {
			t.Errorf("%s: %s", words, got)
		}
	}
}

// A client that has reached its limit is told so, and its command is not done.
func TestLimitsOverRedis(t *testing.T) {
	t.Parallel()
	var left atomic.Int64
	left.Store(2)
	address, _ := open(t, Options{Allow: func(*rights.Client, string) bool { return left.Add(-1) >= 0 }})
	c := dial(t, address)
	c.wants("(nil)", "GET lock")
	c.wants("PONG", "PING")
	c.wants("(error) ERR too many requests", "SET lock v NX PX 60000")
	left.Store(1)
	c.wants("(nil)", "GET lock")
}
