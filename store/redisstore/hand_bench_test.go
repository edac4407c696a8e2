package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// BenchmarkHandOff measures what a contended lock costs a server: a release that hands it on,
// and the place of the next waiter, with a number of waiters. Without waiters, it is an
// acquire that would wait, and a release. The time is what the server reports for its
// scripts, in microseconds and as a median: for both, one after the other, for the two in
// one step, and for each among many of its kind. It also reports how many commands the
// scripts call. A server of several has a mark.
func BenchmarkHandOff(b *testing.B) {
	for _, servers := range []int{1, 5} {
		for _, waiting := range []int{0, 1, 2, 16, 128, 1024} {
			b.Run(fmt.Sprintf("servers=%d/waiting=%d", servers, waiting), func(b *testing.B) { benchHandOff(b, servers, waiting) })
		}
	}
}

func benchHandOff(b *testing.B, servers, waiting int) {
	l := newLongQueue(b, servers, waiting)
	first := "place"
	if waiting == 0 {
		first = "acquire"
	}
	spent, calls := map[string][]float64{}, map[string][]float64{}
	measure := func(name string, n, each int, next func() *script.Command) {
		us, called := l.spends(b, n*each, next)
		spent[name], calls[name] = append(spent[name], us/float64(n)), append(calls[name], called/float64(n))
	}
	for left := b.N; left > 0; left -= 64 {
		i := 0
		measure("both", min(left, 64), 2, func() *script.Command {
			if i++; i%2 == 1 {
				return l.comes()
			}
			return l.goes()
		})
	}
	for left := b.N; left > 0 && waiting > 0; left -= 64 {
		measure("return", min(left, 64), 1, l.returns)
	}
	most := 64
	if waiting > 0 {
		most = min(waiting, 64)
	}
	for left := b.N; left > 0; left -= most {
		measure(first, min(left, most), 1, l.comes)
		measure("release", min(left, most), 1, l.goes)
	}
	if waiting > 0 {
		if has := l.text(b, "GET", benchLock); !strings.HasPrefix(has, l.all[0].Owner) {
			b.Fatalf("the lock has the value %s, want the owner %s", has, l.all[0].Owner)
		}
		if queue := l.text(b, "LLEN", "{"+benchLock+"}:line"); queue != strconv.Itoa(waiting) {
			b.Fatalf("%s entries in the queue, want %d", queue, waiting)
		}
	}
	for name := range spent {
		b.ReportMetric(median(spent[name]), name+"-us")
		b.ReportMetric(median(calls[name]), name+"-calls")
	}
	b.ReportMetric(0, "ns/op")
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

const benchLock = "bench/lock"

// longQueue is a lock with its holder and its waiters.
type longQueue struct {
	*scripted
	all     []store.Lease // the holder and then the waiters; without waiters all holders, one after the other
	waiting int
	last    uint64
}

func newLongQueue(b *testing.B, servers, waiting int) *longQueue {
	n := onRedis(b)
	n.s.Size, n.s.Membership.Fingerprint = servers, "ba9876543210"
	n.text(b, "SET", script.MarkKey, markOf(func(m *nodemark.Mark) {
		m.Print, m.List = n.s.Membership.Fingerprint, "a,b,c,d,e"
		m.Run = strings.Repeat("-", 40) // as in commands that no node has sent
	}))
	n.s.Wall, n.s.Channel = time.Now, script.ChannelBegin+strings.Repeat("c", 26)
	ears := n.another(b)
	if _, err := ears.Exchange(resp.Command("SUBSCRIBE", n.s.Channel)); err != nil {
		b.Fatal(err)
	}
	go func() {
		for rest := make([]byte, 1<<16); ; {
			if _, err := ears.Conn.Read(rest); err != nil {
				return
			}
		}
	}()
	l := &longQueue{scripted: n, waiting: waiting}
	for _, s := range []*script.Script{script.Acquire, script.Release, script.Return} {
		l.must(b, &script.Command{Bytes: s.Lesson()})
	}
	if waiting > 0 {
		l.spends(b, waiting+1, l.comes)
	}
	return l
}

// comes returns the acquire of a new waiter.
func (l *longQueue) comes() *script.Command { return l.s.Encode(l.newcomer(), nil) }

func (l *longQueue) newcomer() driver.Question {
	if l.last++; l.last == 1 {
		l.last = uint64(time.Now().UnixMicro())
	}
	r := store.Lease{Name: benchLock, Owner: store.NewOwnerAt(time.UnixMicro(int64(l.last))), Meta: `{"host":"some-host-name","pid":123456,"purpose":"bench"}`, TTL: 30 * time.Second}
	if l.waiting == 0 {
		r.Name = fmt.Sprint(benchLock, l.last%64)
	}
	l.all = append(l.all, r)
	return driver.Question{Op: quorum.Acquire, Lease: r, Waits: true, Stamp: 123456789012345}
}

// returns returns the holder's release with a place for a new waiter.
func (l *longQueue) returns() *script.Command {
	r, next := l.all[0], l.newcomer()
	l.all, next.IfHeld = l.all[1:], true
	return l.s.Encode(driver.Question{Op: quorum.Release, Lease: r, Next: &next}, nil)
}

// goes returns the holder's release.
func (l *longQueue) goes() *script.Command {
	r := l.all[0]
	l.all = l.all[1:]
	return l.s.Encode(driver.Question{Op: quorum.Release, Lease: r}, nil)
}

// spends runs n of the commands. It returns the time that the server reports for them, and
// how many commands they called.
func (l *longQueue) spends(b *testing.B, n int, next func() *script.Command) (us, calls float64) {
	var commands []*script.Command
	for range n {
		if c := next(); c != nil {
			commands = append(commands, c)
		}
	}
	usBefore, before := l.spent(b)
	for some := range slices.Chunk(commands, 64) {
		l.must(b, some...)
	}
	us, calls = l.spent(b)
	return us - usBefore, calls - before
}

func (l *longQueue) must(b *testing.B, commands ...*script.Command) []resp.Value {
	said, err := l.run(commands...)
	if err != nil {
		b.Fatal(err)
	}
	return said
}

// spent returns how long the server reports that it ran scripts, in microseconds, and how
// many commands they called.
func (l *longQueue) spent(b *testing.B) (us, calls float64) {
	info := string(l.must(b, script.NewCommand("INFO", "commandstats"))[0].Text)
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		count, rest, _ := strings.Cut(rest, ",usec=")
		took, _, _ := strings.Cut(rest, ",")
		number := func(text string) float64 {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
		switch {
		case took == "" || name == "info":
		case name == "evalsha":
			us = number(took)
		default:
			calls += number(count)
		}
	}
	return us, calls
}
