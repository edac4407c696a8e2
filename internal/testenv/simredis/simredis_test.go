package simredis_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/simredis"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// real is a connection to a Redis server, which sends one command at a time.
type real struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, addr string) *real {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &real{t, conn, bufio.NewReader(conn)}
}

func encode(words []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

// do sends a command and returns the bytes of the reply.
func (r *real) do(words []string) []byte {
	r.t.Helper()
	if _, err := r.conn.Write(encode(words)); err != nil {
		r.t.Fatal(err)
	}
	return r.reply()
}

func (r *real) reply() []byte {
	r.t.Helper()
	b, err := raw(r.in)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// raw reads one value of any type.
func raw(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$', '=', '!':
		for range max(0, n+2) {
			if n < 0 {
				break
			}
			c, err := in.ReadByte()
			if err != nil {
				return nil, err
			}
			line = append(line, c)
		}
	case '*', '>', '~', '%':
		if line[0] == '%' {
			n *= 2
		}
		for range n {
			b, err := raw(in)
			if err != nil {
				return nil, err
			}
			line = append(line, b...)
		}
	}
	return line, nil
}

// both is a real server and a simulated one, with the same clock.
type both struct {
	t    *testing.T
	real *real
	sim  *simredis.Conn
}

func open(t *testing.T) *both {
	return &both{t: t, real: dial(t, redistest.Start(t).Addr()), sim: simredis.New("run", time.Now).Connect(func([]byte) {})}
}

// speak makes both speak a version of the protocol. Their replies differ, since they describe
// the server.
func (b *both) speak(version string) {
	b.real.do([]string{"HELLO", version})
	b.sim.Do([]string{"HELLO", version})
}

// compare sends a command to both and requires the same reply, except that times may differ a
// little.
func (b *both) compare(words ...string) {
	b.t.Helper()
	want, got := b.real.do(words), b.sim.Do(words)
	if !alike(want, got) {
		b.t.Errorf("%.200q: the simulated server replied\n%q, want as Redis\n%q", words, got, want)
	}
}

var (
	numbers = regexp.MustCompile(`\d+`)
	lengths = regexp.MustCompile(`\$\d+\r\n`)
	clocks  = regexp.MustCompile(`\b(\d{10})(?:\r\n| )\d{1,6}(\r\n| )`) // seconds and microseconds
)

// alike reports whether two replies are equal, except that numbers of four digits and more are
// times. Times in seconds, milliseconds or microseconds may differ by two seconds, and the
// microseconds of a second by any amount.
func alike(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	text, times := timesIn(a)
	other, others := timesIn(b)
	return text == other && slices.EqualFunc(times, others, func(x, y float64) bool { return math.Abs(x-y) <= 2 })
}

// timesIn replaces the times in a reply, and returns them in seconds. Times that may differ by
// any amount are 0.
func timesIn(reply []byte) (text string, times []float64) {
	reply = clocks.ReplaceAll(lengths.ReplaceAll(reply, nil), []byte("$1$2"))
	text = numbers.ReplaceAllStringFunc(string(reply), func(n string) string {
		v, err := strconv.ParseFloat(n, 64)
		if err != nil || len(n) < 4 {
			return n
		}
		switch {
		case v >= 1e15:
			v /= 1e6
		case v >= 1e12:
			v /= 1e3
		case v < 1e9:
			v = 0
		}
		times = append(times, v)
		return "time"
	})
	return text, times
}

// Replies are alike, at whatever moment a second passes between them.
func TestAlike(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"*3\r\n:1\r\n$10\r\n1795417950\r\n$3\r\n369\r\n", "*3\r\n:1\r\n$10\r\n1795417949\r\n$6\r\n999977\r\n", true},
		{":1795417950000\r\n", ":1795417949999\r\n", true},
		{":1795417950000369\r\n", ":1795417947000369\r\n", false},
		{"$32\r\n1795417950000053 1795417950 53 0\r\n", "$33\r\n1795417950000311 1795417950 311 0\r\n", true},
		{"$32\r\n1795417950000053 1795417950 53 0\r\n", "$33\r\n1795417950000311 1795417950 311 1\r\n", false},
		{":29999\r\n", ":30000\r\n", true},
		{":1\r\n", ":2\r\n", false},
	} {
		if got := alike([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("alike(%q, %q) = %t, want %t", c.a, c.b, got, c.want)
		}
	}
}

// The simulated server replies to random commands as Redis does, whatever its keys hold.
func TestCommands(t *testing.T) {
	keys := []string{"a", "b", "{c}:d"}
	values := []string{"", "x", "one two", "12", "7 {\"a\":1}"}
	for seed := range uint64(20) {
		b := open(t)
		rng := rand.New(rand.NewPCG(seed, 0))
		key := func() string { return keys[rng.IntN(len(keys))] }
		value := func() string { return values[rng.IntN(len(values))] }
		small := func() string { return strconv.Itoa(rng.IntN(7) - 3) }
		long := func() string { return strconv.Itoa(1_000_000 + rng.IntN(1_000_000)) }
		random := []func() []string{
			func() []string { return []string{"SET", key(), value()} },
			func() []string { return []string{"SET", key(), value(), "PX", long()} },
			func() []string { return []string{"SET", key(), value(), "PX", long(), "NX"} },
			func() []string { return []string{"SET", key(), value(), "XX", "KEEPTTL"} },
			func() []string { return []string{"SET", key(), value(), "PX", "-" + long()} },
			func() []string { return []string{"SET", key(), value(), "PX", "0"} },
			func() []string { return []string{"SET", key(), value(), "odd"} },
			func() []string { return []string{"GET", key()} },
			func() []string { return []string{"MGET", key(), key(), "none"} },
			func() []string { return []string{"DEL", key(), key()} },
			func() []string { return []string{"EXISTS", key(), key()} },
			func() []string { return []string{"TYPE", key()} },
			func() []string { return []string{"STRLEN", key()} },
			func() []string { return []string{"INCR", key()} },
			func() []string { return []string{"PTTL", key()} },
			func() []string { return []string{"PEXPIRE", key(), long()} },
			func() []string { return []string{"PEXPIRE", key(), "-" + long()} },
			func() []string { return []string{"PEXPIRE", key(), "soon"} },
			func() []string { return []string{"PERSIST", key()} },
			func() []string { return []string{"RPUSH", key(), value(), value()} },
			func() []string { return []string{"LPUSH", key(), value()} },
			func() []string { return []string{"LPOP", key()} },
			func() []string { return []string{"LLEN", key()} },
			func() []string { return []string{"LINDEX", key(), small()} },
			func() []string { return []string{"LRANGE", key(), small(), small()} },
			func() []string { return []string{"LREM", key(), strconv.Itoa(rng.IntN(3)), value()} },
			func() []string { return []string{"LINSERT", key(), "BEFORE", value(), value()} },
			func() []string { return []string{"LINSERT", key(), "AFTER", value(), value()} },
			func() []string { return []string{"GET"} },
			func() []string { return []string{"TIME"} },
			func() []string { return []string{"PUBLISH", "nobody", value()} },
		}
		b.speak(strconv.Itoa(2 + rng.IntN(2)))
		for range 300 {
			b.compare(random[rng.IntN(len(random))]()...)
		}
		b.compare("FLUSHALL")
		b.compare("MGET", keys[0], keys[1])
		if t.Failed() {
			t.Fatalf("failed with seed %d", seed)
		}
	}
}

// Scripts give the same replies as in Redis, which converts numbers, errors and nil in its own
// way.
func TestScripts(t *testing.T) {
	b := open(t)
	for _, version := range []string{"2", "3"} {
		b.speak(version)
		b.compare("DEL", "text", "list")
		b.compare("SET", "text", "12")
		b.compare("RPUSH", "list", "a", "b")
		for _, script := range []string{
			"return 1", "return -3.7", "return '1.5'", "return nil", "return true", "return false", "return {1, 'x', false, 2}", "return {1, nil, 3}", "return {}",
			"return {err = 'ODD thing'}", "return {ok = 'FINE'}", "return redis.error_reply('ODD thing')", "return redis.status_reply('FINE')",
			"return KEYS[1] .. ARGV[1]", "return #KEYS + #ARGV", "return ARGV[2] + 1", "return 10 / 4", "return 2 ^ 40",
			"return redis.call('GET', 'text') + 1", "return redis.call('GET', 'none')", "return {redis.call('MGET', 'text', 'none', 'list')}",
			"return redis.pcall('GET', 'list')", "return type(redis.pcall('GET', 'list'))", "return redis.pcall('GET', 'list').err and 1",
			"return select(2, pcall(function() return redis.call('GET', 'text') end))",
			"local well = pcall(function() return redis.call('GET', 'list') end) return well and 1 or 0",
			"return redis.call('SET', 'text', 12)", "return redis.call('SET', 'text', 1753000000000)", "return redis.call('GET', 'text')",
			"return redis.call('SET', 'text', 1.5)", "return redis.call('GET', 'text')", "return redis.call('SET', 'text', '12')",
			"return string.format('%.0f', 1753000000000123)", "return string.format('%016.0f', 1753000000000123)", "return string.format('%.0f %s', '42', 7)", "return string.format('%d%%', 3)",
			"return tostring(1753000000000)", "return 1753000000000 .. ''", "return tostring(1.5)", "return '7' * 2 .. ''", "return (1753000000123456 - 1753000000123456 % 1000) / 1000 .. ''",
			"return {string.match('0123 ab c', '^(%d+) (%S+) (%S+)$')}", "return string.match('12345', '^%d+()')", "return string.byte('', 2) or 'nothing'", "return string.byte('abc', 2)",
			"return {string.find('a b c', ' ', 3, true)}", "return string.sub('abcdef', -3, -2)", "return math.max(3, '7')", "return math.floor(-2.5)", "return {unpack({1, 2, 3}, 2, 3)}",
			"return table.concat({'a', 'b', 1}, ' ')", "return redis.sha1hex('x')", "return tonumber('x') or 'no number'", "return tonumber('12')",
			"local t = redis.call('TIME') return #t", "return redis.call('PTTL', 'none')", "return redis.call('LINDEX', 'list', '-1')", "return redis.call('LRANGE', 'list', 0, -1)",
			"return redis.call('SET', 'text', 'x', 'NX') or 'not set'", "return redis.call('PUBLISH', 'nobody', '')",
		} {
			b.compare("EVAL", script, "1", "key", "arg", "41")
		}
	}
	b.compare("EVALSHA", "0123456789012345678901234567890123456789", "0")
}

// tee is a connection to a real server that sends the same commands to a simulated one, and
// compares the replies.
type tee struct {
	net.Conn
	b  *both
	in *bufio.Reader

	mu   sync.Mutex
	left []byte   // the beginning of the next command
	want [][]byte // replies of the simulated server that are not compared yet
	read []byte   // the rest of a reply of the real server
}

func (c *tee) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = append(c.left, b...)
	for {
		words, rest, err := simredis.Parse(c.left)
		if err != nil {
			c.b.t.Error(err)
		}
		if words == nil {
			break
		}
		c.left = rest
		c.want = append(c.want, c.b.sim.Do(words))
	}
	return c.Conn.Write(b)
}

func (c *tee) Read(b []byte) (int, error) {
	if len(c.read) == 0 {
		reply, err := raw(c.in)
		if err != nil {
			return 0, err
		}
		c.read = reply
		if !bytes.HasPrefix(reply, []byte(">3\r\n$7\r\nmessage")) {
			c.mu.Lock()
			want := c.want[0]
			c.want = c.want[1:]
			c.mu.Unlock()
			itself := bytes.Contains(reply, []byte("run_id:")) || bytes.Contains(reply, []byte("proto")) || // describes the server
				bytes.Contains(reply, []byte("appendfsync")) // lists its settings, in any order
			if !itself && !alike(reply, want) {
				c.b.t.Errorf("the simulated server replied\n%q, want as Redis\n%q", want, reply)
			}
		}
	}
	n := copy(b, c.read)
	c.read = c.read[n:]
	return n, nil
}

// The scripts of the Redis store, as it sends them, give the same replies on both servers, for
// locks that are acquired, waited for, confirmed, renewed, released and inspected.
func TestStore(t *testing.T) {
	server := redistest.Start(t)
	server.Text(t, "DEL", redistest.Mark)
	b := &both{t: t, sim: simredis.New(strings.Repeat("a", 40), time.Now).Connect(func([]byte) {})}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &tee{Conn: conn, b: b, in: bufio.NewReader(conn)}, nil
	}
	s, err := redisstore.Open(t.Context(), "redis://"+server.Addr(), &redisstore.Options{Dial: dial, NodeTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	request := func(owner string) store.Lease {
		return store.Lease{Name: "lock", Owner: owner, Meta: `{"host":"h"}`, TTL: 30 * time.Second}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var held *store.Lease
	for range 200 {
		switch r := request(store.NewOwner()); {
		case held == nil:
			r.Require = store.Efficiency
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err != nil {
				t.Fatal(err)
			}
			held = &r
		case rng.IntN(4) == 0:
			s.Acquire(t.Context(), store.AcquireRequest{Lease: *held}) // confirms the lease
		case rng.IntN(3) == 0:
			s.Renew(t.Context(), []store.Lease{*held})
		case rng.IntN(3) == 0:
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Millisecond)
			next := request(store.NewOwnerAt(time.Now()))
			if _, err := s.Wait(ctx, store.WaitRequest{Lease: next}, nil); err == nil {
				t.Error("a second owner got the lock while it is held")
			}
			stop()
		case rng.IntN(3) == 0:
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err == nil {
				t.Error("a second owner got the lock while it is held")
			}
			s.Inspect(t.Context(), "lock")
		default:
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: *held, Renewed: rng.IntN(2) == 0}); err != nil {
				t.Error(err)
			}
			held = nil
		}
		if t.Failed() {
			return
		}
	}
}

// Patterns match the same names on both servers.
func TestPatterns(t *testing.T) {
	b := open(t)
	for _, name := range []string{"a", "a/b", "{a/b}:token", "*", "a?c", `a\b`, "ä"} {
		b.compare("SET", name, "x")
		for _, pattern := range []string{"*", "?", "??", "a*", "a/*", "*b", "{*}:token", `\*`, `a\?c`, "a?c", `a\\b`, `a\`, "", "***"} {
			b.compare("KEYS", pattern)
		}
		b.compare("DEL", name)
	}
}
