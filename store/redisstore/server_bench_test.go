package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// BenchmarkServer measures what an uncontended lock and unlock costs a server whose commands all
// come pipelined on one connection, alone or in lists of steps. One of several servers has a
// mark. It reports the CPU time of the server and what it spends in scripts by its own account,
// in microseconds for a lock and unlock, as medians. The round trips of the benchmark are few,
// so both hardly depend on the network.
func BenchmarkServer(b *testing.B) {
	for _, servers := range []int{1, 5} {
		for _, steps := range []int{1, 2, 4, 8, 16} {
			b.Run(fmt.Sprintf("servers=%d/steps=%d", servers, steps), func(b *testing.B) { benchServer(b, servers, steps) })
		}
	}
}

// benchLocks is how many locks are acquired, and then released, in one round trip.
const benchLocks = 64

func benchServer(b *testing.B, servers, steps int) {
	l := newLongQueue(b, servers, 0)
	l.must(b, &script.Command{Bytes: script.Steps.Lesson()})
	const rounds = 16
	var cpu, scripts []float64
	for done := 0; done < b.N; done += rounds * benchLocks {
		var calls [2 * rounds][]*script.Command
		for i := range rounds {
			calls[2*i], calls[2*i+1] = l.pairs(steps)
		}
		cpuBefore := l.cpu(b)
		before, _ := l.spent(b)
		for i, c := range calls {
			of := script.Release
			if i%2 == 0 {
				of = script.Acquire
			}
			for _, v := range l.must(b, c...) {
				said := []resp.Value{v}
				if steps > 1 {
					said = v.List[min(1, len(v.List)):] // none if all was done as asked; see calls/steps.lua
				}
				for _, v := range said {
					done := steps > 1 && v.Kind == ':' && v.Num == 1
					if a := script.ReplyTo(v).Answer(of); !done && a.Kind != quorum.Yes {
						b.Fatal(a)
					}
				}
			}
		}
		after, _ := l.spent(b)
		scripts = append(scripts, (after-before)/(rounds*benchLocks))
		cpu = append(cpu, (l.cpu(b)-cpuBefore)/(rounds*benchLocks))
	}
	b.ReportMetric(median(cpu), "server-us")
	b.ReportMetric(median(scripts), "scripts-us")
	b.ReportMetric(0, "ns/op")
}

// pairs returns calls that acquire locks, and calls that release them again, in lists of that
// many steps.
func (l *longQueue) pairs(steps int) (acquire, release []*script.Command) {
	for some := range slices.Chunk(make([]struct{}, benchLocks), steps) {
		var as, rs script.StepList
		for range some {
			q := l.newcomer()
			q.Waits = false
			a, r := l.s.Encode(q, nil), l.s.Encode(driver.Question{Op: quorum.Release, Lease: q.Lease}, nil)
			if steps == 1 {
				acquire, release = append(acquire, a), append(release, r)
				continue
			}
			as.Add(a)
			rs.Add(r)
		}
		if steps > 1 {
			acquire = append(acquire, &script.Command{Bytes: as.Append(nil, false, "")})
			release = append(release, &script.Command{Bytes: rs.Append(nil, false, "")})
		}
	}
	return acquire, release
}

// cpu returns the CPU time that the server has used, in microseconds.
func (l *longQueue) cpu(b *testing.B) (us float64) {
	return usedCPU(b, string(l.must(b, script.NewCommand("INFO", "cpu"))[0].Text))
}

// usedCPU returns the CPU time that a server's reply to INFO says that it has used, in
// microseconds.
func usedCPU(b *testing.B, info string) (us float64) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.Fatal(err)
			}
			us += seconds * 1e6
		}
	}
	return us
}
