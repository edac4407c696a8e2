package redisstore

import (
	"flag"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// With these flags the comparison with other libraries, in bench, has BenchmarkMessages use its
// servers.
var (
	messagesTo    = flag.String("messages.to", "", "the addresses of empty `servers` for BenchmarkMessages, separated by commas; it starts its own if there are none")
	messagesLocks = flag.Int("messages.locks", 0, "the `number` of concurrent locks of BenchmarkMessages; 1, 16 and 256 in turn if it is 0")
)

// BenchmarkMessages measures how much of the cost of an uncontended lock and unlock the messages
// and the scripts are. A client locks and unlocks with a number of goroutines. Beside
// it, one goroutine sends the same messages for as many locks, by hand over one connection to
// each server, and waits for all replies. It has no deadlines, renewal or clean-up, and shares
// no lock among goroutines. Reported are locks a second, and the CPU time of this process and of
// all servers for each, in microseconds.
func BenchmarkMessages(b *testing.B) {
	counts, given := []int{1, 5}, []string(nil)
	if *messagesTo != "" {
		given = strings.Split(*messagesTo, ",")
		counts = []int{len(given)}
	}
	at := []int{1, 16, 256}
	if *messagesLocks > 0 {
		at = []int{*messagesLocks}
	}
	for _, servers := range counts {
		for _, locks := range at {
			name := fmt.Sprintf("servers=%d/locks=%d/", servers, locks)
			for _, way := range []struct {
				name string
				lock func(m *messages, b *testing.B, locks, rounds int)
			}{{"leasehold", (*messages).byClient}, {"by-hand", (*messages).byHand}} {
				b.Run(name+way.name, func(b *testing.B) {
					addrs := given
					if addrs == nil {
						for _, s := range redistest.StartN(b, servers) {
							addrs = append(addrs, s.Addr())
						}
					}
					newMessages(b, addrs).measure(b, locks, way.lock)
				})
			}
		}
	}
}

// messages is a store, and a raw connection to each of its servers.
type messages struct {
	s       *engine
	conns   []net.Conn
	replies []resp.Reader
	out     []byte
}

func newMessages(b *testing.B, addrs []string) *messages {
	m := &messages{}
	var urls []string
	for _, addr := range addrs {
		urls = append(urls, "redis://"+addr)
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conn.Close() })
		m.conns, m.replies = append(m.conns, conn), append(m.replies, resp.NewReader(conn))
	}
	s, err := openEngine(b.Context(), strings.Join(urls, " "), nil, false)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	m.s = s
	m.byClient(b, 1, 1) // so that all servers are connected
	return m
}

// measure has lock make b.N locks and unlocks, and reports their cost.
func (m *messages) measure(b *testing.B, locks int, lock func(m *messages, b *testing.B, locks, rounds int)) {
	rounds := max(b.N/locks, 1)
	ours, theirs, began := load.CPUTime(), m.cpu(b), time.Now()
	b.ResetTimer()
	lock(m, b, locks, rounds)
	took := time.Since(began)
	n := float64(rounds * locks)
	b.ReportMetric(n/took.Seconds(), "locks/s")
	b.ReportMetric(float64((load.CPUTime()-ours).Microseconds())/n, "client-us")
	b.ReportMetric((m.cpu(b)-theirs)/n, "server-us")
	b.ReportMetric(0, "ns/op")
}

// cpu returns the CPU time that the servers have used, in microseconds.
func (m *messages) cpu(b *testing.B) (us float64) {
	for i, c := range m.conns {
		if _, err := c.Write(resp.Command("INFO", "cpu")); err != nil {
			b.Fatal(err)
		}
		v, err := m.replies[i].Next()
		if err != nil {
			b.Fatal(err)
		}
		us += usedCPU(b, string(v.Text))
	}
	return us
}

// byClient locks and unlocks with one goroutine for each lock.
func (m *messages) byClient(b *testing.B, locks, rounds int) {
	c := leasehold.New(store.New(m.s), nil)
	var all sync.WaitGroup
	for i := range locks {
		all.Go(func() {
			l := c.Mutex(benchLock + strconv.Itoa(i))
			for range rounds {
				lease, err := l.Acquire(b.Context())
				if err == nil {
					err = lease.Release(b.Context())
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// byHand sends all acquires at once, and then all releases. They are what a client sends.
func (m *messages) byHand(b *testing.B, locks, rounds int) {
	leases := make([]store.Lease, locks)
	commands := make([]*script.Command, locks)
	for range rounds {
		for i := range leases {
			leases[i] = store.Lease{Name: benchLock + strconv.Itoa(i), Owner: store.NewOwner(), Meta: `{"host":"a","pid":12345,"since":1795657262}`, TTL: 30 * time.Second}
		}
		for _, op := range []quorum.Op{quorum.Acquire, quorum.Release} {
			for i, r := range leases {
				commands[i] = m.s.Encode(driver.Question{Op: op, Lease: r, Tombstone: op == quorum.Release && len(m.conns) > 1}, commands[i])
			}
			m.exchange(b, commands)
		}
	}
}

// exchange sends the commands to all servers, as lists of steps, and checks all replies.
func (m *messages) exchange(b *testing.B, commands []*script.Command) {
	var list script.StepList
	for i, n := range m.s.Nodes {
		m.out = m.out[:0]
		for some := range slices.Chunk(commands, script.MaxSteps) {
			list.Reset()
			for _, c := range some {
				if !list.Add(c) {
					b.Fatal("the list is full")
				}
			}
			m.out = list.Append(m.out, false, "")
			if list.Gated() {
				script.FillGate(m.out, n.Identity().RunID[:script.RunPrint], false)
			}
		}
		if _, err := m.conns[i].Write(m.out); err != nil {
			b.Fatal(err)
		}
	}
	for i := range m.replies {
		for some := range slices.Chunk(commands, script.MaxSteps) {
			v, err := m.replies[i].Next()
			if err != nil {
				b.Fatal(err)
			}
			list := script.ReplyToList(v, len(some))
			for j, c := range some {
				if a := list.Step(j, c).Answer(c.Script); a.Kind != quorum.Yes {
					b.Fatal(a)
				}
			}
		}
	}
}
