package beside

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/leasehold-dev/leasehold/bench/resp"
	"github.com/leasehold-dev/leasehold/bench/servers"
	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// BenchmarkDoor measures what it costs to take and release a lock over the Redis door, with many
// goroutines that each want a lock of their own, beside
//
//   - the store, used directly
//   - Redis itself, with the same client
//   - a server that answers two fixed lines and keeps nothing, with the same client: no door over
//     TCP can beat it
//   - dflockd and its own protocol, if DFLOCKD names its program
//
// All are measured in turns, in one run, each for a second a round, and medians are shown:
//
//	DFLOCKD=/path/of/dflockd go test ./beside -run '^$' -bench BenchmarkDoor -benchtime 1x
//
// A server is a process of its own. The processor time of the client is that of this process.
func BenchmarkDoor(b *testing.B) {
	measured := doorMeasured(b)
	ways := regexp.MustCompile(*doorWays)
	measured = slices.DeleteFunc(measured, func(m *measuredWay) bool { return !ways.MatchString(m.store + ", " + m.name) })
	for _, m := range measured { // connections and scripts are there before the first round
		m.round(b, 200*time.Millisecond)
		m.rounds = nil
	}
	for range *doorRounds {
		for _, m := range measured {
			m.round(b, time.Second)
		}
	}
	fmt.Printf("\n%-8s %-24s %9s %7s | %9s %7s %7s %7s %7s\n", "store", "way", "us a pair", "ratio", "CPU us", "ratio", "client", "door", "Redis")
	direct := map[string]doorFigures{}
	for _, m := range measured {
		is := m.median()
		if m.direct {
			direct[m.store] = is
		}
		fmt.Printf("%-8s %-24s %9.1f %7.2f | %9.1f %7.2f %7.1f %7.1f %7.1f\n", m.store, m.name,
			is.wall, direct[m.store].wall/is.wall, is.cpu(), direct[m.store].cpu()/is.cpu(), is.client, is.door, is.redis)
	}
}

const doorClients = 64

var (
	doorRounds = flag.Int("door.rounds", 5, "how many rounds BenchmarkDoor makes")
	doorWays   = flag.String("door.ways", "", "which ways BenchmarkDoor measures: a regular expression")
)

// measuredWay is one way to take and release locks.
type measuredWay struct {
	store, name string
	direct      bool // the others with this store are compared with it
	door, redis int  // their processes, or 0
	pairs       []func() error
	rounds      []doorFigures
}

// doorFigures are microseconds for each pair: of time, and of the processors.
type doorFigures struct{ wall, client, door, redis float64 }

func (f doorFigures) cpu() float64 { return f.client + f.door + f.redis }

func (m *measuredWay) round(b *testing.B, d time.Duration) {
	b.Helper()
	client, door, redis, begin := ownCPU(b), processCPU(b, m.door), processCPU(b, m.redis), time.Now()
	var n atomic.Int64
	var all sync.WaitGroup
	for _, pair := range m.pairs {
		all.Go(func() {
			for time.Since(begin) < d {
				if err := pair(); err != nil {
					b.Errorf("%s, %s: %v", m.store, m.name, err)
					return
				}
				n.Add(1)
			}
		})
	}
	all.Wait()
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(max(1, n.Load())) }
	m.rounds = append(m.rounds, doorFigures{
		wall: each(time.Since(begin)), client: each(ownCPU(b) - client),
		door: each(processCPU(b, m.door) - door), redis: each(processCPU(b, m.redis) - redis),
	})
}

func processCPU(b *testing.B, pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	used, err := servers.CPU(pid)
	if err != nil {
		b.Fatal(err)
	}
	return used
}

func ownCPU(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// median returns the median of each figure.
func (m *measuredWay) median() doorFigures {
	of := func(figure func(f doorFigures) float64) float64 {
		slices.SortFunc(m.rounds, func(a, b doorFigures) int { return cmp.Compare(figure(a), figure(b)) })
		return figure(m.rounds[len(m.rounds)/2])
	}
	return doorFigures{
		wall: of(func(f doorFigures) float64 { return f.wall }), client: of(func(f doorFigures) float64 { return f.client }),
		door: of(func(f doorFigures) float64 { return f.door }), redis: of(func(f doorFigures) float64 { return f.redis }),
	}
}

func doorMeasured(b *testing.B) (all []*measuredWay) {
	redis, err := servers.StartRedis(1)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(redis.Close)
	if err := redis.Empty(b.Context()); err != nil {
		b.Fatal(err)
	}
	redisAddr, redisPID := redis[0].Addr(), redis[0].PID()
	binary := build(b)
	inMemory, inRedis := openDoor(b, binary, "memory:"), openDoor(b, binary, "redis://"+redisAddr)
	floorAddr, floorPID := openFloor(b)

	add := func(store, name string, door, redis int, pairs []func() error) *measuredWay {
		m := &measuredWay{store: store, name: name, door: door, redis: redis, pairs: pairs}
		all = append(all, m)
		return m
	}
	st := memstore.New(nil)
	b.Cleanup(func() { st.Close() })
	door := inMemory.process.PID()
	add("memory", "used directly", 0, 0, directly(st)).direct = true
	add("memory", "door, rueidis", door, 0, throughRueidis(b, inMemory.address))
	add("memory", "floor, rueidis", floorPID, 0, throughRueidis(b, floorAddr))
	add("memory", "door, go-redis", door, 0, throughGoredis(b, inMemory.address))
	add("memory", "floor, go-redis", floorPID, 0, throughGoredis(b, floorAddr))
	add("memory", "door, by hand", door, 0, byHand(b, inMemory.address))
	add("memory", "floor, by hand", floorPID, 0, byHand(b, floorAddr))
	if program := os.Getenv(dflockdVar); program != "" {
		addr, pid := openDflockd(b, program)
		add("memory", "dflockd, by hand", pid, 0, overDflockd(b, addr))
	}
	st, err = redisstore.Open(b.Context(), "redis://"+redisAddr, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { st.Close() })
	door = inRedis.process.PID()
	add("redis", "used directly", 0, redisPID, directly(st)).direct = true
	add("redis", "door, rueidis", door, redisPID, throughRueidis(b, inRedis.address))
	add("redis", "Redis itself, rueidis", 0, redisPID, throughRueidis(b, redisAddr))
	add("redis", "door, go-redis", door, redisPID, throughGoredis(b, inRedis.address))
	add("redis", "Redis itself, go-redis", 0, redisPID, throughGoredis(b, redisAddr))
	add("redis", "door, by hand", door, redisPID, byHand(b, inRedis.address))
	return all
}

// doorPairs returns a pair for each client.
func doorPairs(pair func(i int, name string) func() error) (all []func() error) {
	for i := range doorClients {
		all = append(all, pair(i, "cost/"+strconv.Itoa(i)))
	}
	return all
}

// directly takes leases as the door does.
func directly(st *store.Store) []func() error {
	meta := store.Holder{Host: "127.0.0.1", Purpose: "rueidis", Unrenewed: true, Since: time.Now()}.Encode()
	return doorPairs(func(_ int, name string) func() error {
		return func() error {
			l := store.Lease{Name: name, Owner: store.NewOwner(), Meta: meta, TTL: time.Minute}
			_, err := st.Acquire(context.Background(), store.AcquireRequest{Lease: l})
			if err == nil {
				err = st.Release(context.Background(), store.ReleaseRequest{Lease: l})
			}
			return err
		}
	})
}

// What lock libraries send.
const (
	costValue  = "8c7702e5d6ad4bb2a5bf7f"
	costDelete = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
)

// throughRueidis sends everything over few connections.
func throughRueidis(b *testing.B, addr string) []func() error {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	script := rueidis.NewLuaScript(costDelete)
	return doorPairs(func(_ int, name string) func() error {
		keys, args := []string{name}, []string{costValue}
		return func() error {
			ctx := context.Background()
			if err := c.Do(ctx, c.B().Set().Key(name).Value(costValue).Nx().PxMilliseconds(60000).Build()).Error(); err != nil {
				return err
			}
			return isOne(script.Exec(ctx, c, keys, args).AsInt64())
		}
	})
}

// throughGoredis has a connection for each client.
func throughGoredis(b *testing.B, addr string) []func() error {
	c := goredis.NewClient(&goredis.Options{Addr: addr, PoolSize: doorClients})
	b.Cleanup(func() { c.Close() })
	script := goredis.NewScript(costDelete)
	return doorPairs(func(_ int, name string) func() error {
		return func() error {
			ctx := context.Background()
			if got, err := c.SetNX(ctx, name, costValue, time.Minute).Result(); err != nil || !got {
				return fmt.Errorf("not taken: %v, %w", got, err)
			}
			return isOne(script.Run(ctx, c, []string{name}, costValue).Int64())
		}
	})
}

func isOne(n int64, err error) error {
	if err == nil && n != 1 {
		err = fmt.Errorf("the answer is %d", n)
	}
	return err
}

// byHand has a connection for each client, and does nothing but write and read.
func byHand(b *testing.B, addr string) []func() error {
	return doorPairs(func(_ int, name string) func() error {
		set := resp.AppendCommand(nil, "SET", name, costValue, "NX", "PX", "60000")
		del := resp.AppendCommand(nil, "DELIFEQ", name, costValue)
		say := speaker(b, addr)
		return func() error {
			if _, err := say(set, "+OK\r\n"); err != nil {
				return err
			}
			_, err := say(del, ":1\r\n")
			return err
		}
	})
}

// speaker returns a function that writes something over a connection, and reads a line that begins
// with want.
func speaker(b *testing.B, addr string) func(send []byte, want string) ([]byte, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { nc.Close() })
	in := bufio.NewReader(nc)
	return func(send []byte, want string) ([]byte, error) {
		if _, err := nc.Write(send); err != nil {
			return nil, err
		}
		line, err := in.ReadSlice('\n')
		if err == nil && !strings.HasPrefix(string(line), want) {
			err = fmt.Errorf("the answer is %q", line)
		}
		return line, err
	}
}

// overDflockd has a connection for each client, and does nothing but write and read.
func overDflockd(b *testing.B, addr string) []func() error {
	return doorPairs(func(_ int, name string) func() error {
		lock, unlock := []byte("l\n"+name+"\n0 60\n"), []byte("r\n"+name+"\n")
		say := speaker(b, addr)
		var release []byte
		return func() error {
			line, err := say(lock, "ok ")
			if err != nil {
				return err
			}
			token, _, _ := bytes.Cut(line[len("ok "):], []byte(" "))
			release = append(append(append(release[:0], unlock...), token...), '\n')
			_, err = say(release, "ok\n")
			return err
		}
	})
}

func openDflockd(b *testing.B, program string) (addr string, pid int) {
	n, err := port.Pick()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { port.Release(n) })
	p, err := child.Start(exec.Command(program, "--host", "127.0.0.1", "--port", strconv.Itoa(n)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Kill)
	addr = "127.0.0.1:" + strconv.Itoa(n)
	listens(b, p, addr)
	return addr, p.PID()
}

// listens waits until a process listens.
func listens(b *testing.B, p *child.Process, addr string) {
	b.Helper()
	for {
		if nc, err := net.Dial("tcp", addr); err == nil {
			nc.Close()
			return
		}
		select {
		case <-p.Done():
			b.Fatalf("the server at %s ended: %v", addr, p.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// floorAt is the environment variable that makes TestFloor a server.
const floorAt = "LEASEHOLD_FLOOR_AT"

func openFloor(b *testing.B) (addr string, pid int) {
	n, err := port.Pick()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { port.Release(n) })
	addr = "127.0.0.1:" + strconv.Itoa(n)
	cmd := exec.Command(os.Args[0], "-test.run=^TestFloor$")
	cmd.Env = append(os.Environ(), floorAt+"="+addr)
	p, err := child.Start(cmd)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Kill)
	listens(b, p, addr)
	return addr, p.PID()
}

// TestFloor is the server of BenchmarkDoor that keeps nothing.
func TestFloor(t *testing.T) {
	addr := os.Getenv(floorAt)
	if addr == "" {
		t.Skip("a server of BenchmarkDoor")
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	for {
		nc, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		go answerLines(nc)
	}
}

// answerLines answers SET with OK, and scripts and DELIFEQ with 1, one write for all commands that
// one read brought.
func answerLines(nc net.Conn) {
	defer nc.Close()
	in := bufio.NewReaderSize(nc, 16<<10)
	var out []byte
	for {
		var words, size int
		if err := number(in, '*', &words); err != nil {
			return
		}
		answer := "-ERR unknown command\r\n"
		for i := range words {
			if number(in, '$', &size) != nil {
				return
			}
			if i == 0 {
				word, err := in.Peek(size)
				if err != nil {
					return
				}
				switch strings.ToUpper(string(word)) {
				case "SET", "CLIENT":
					answer = "+OK\r\n"
				case "HELLO":
					answer = "%2\r\n+version\r\n+7.2.0\r\n+proto\r\n:3\r\n"
				case "EVALSHA", "DELIFEQ":
					answer = ":1\r\n"
				}
			}
			if _, err := in.Discard(size + 2); err != nil {
				return
			}
		}
		if out = append(out, answer...); in.Buffered() > 0 {
			continue
		}
		if _, err := nc.Write(out); err != nil {
			return
		}
		out = out[:0]
	}
}

// number reads a line that begins with kind and has a number.
func number(in *bufio.Reader, kind byte, n *int) error {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if line[0] != kind {
		return errors.New("no command")
	}
	*n = 0
	for _, c := range line[1 : len(line)-2] {
		*n = *n*10 + int(c-'0')
	}
	return nil
}
