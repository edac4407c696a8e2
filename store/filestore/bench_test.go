package filestore

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

func BenchmarkAcquireRelease(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "locks"), nil)
	for b.Loop() {
		r := request("a")
		mustAcquire(b, s, r)
		mustRelease(b, s, r)
	}
}

// BenchmarkAcquireReleaseParallel has many goroutines, each with a lock of its own.
func BenchmarkAcquireReleaseParallel(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "locks"), nil)
	b.RunParallel(func(p *testing.PB) {
		name := store.NewOwner()
		for p.Next() {
			r := request(name)
			mustAcquire(b, s, r)
			mustRelease(b, s, r)
		}
	})
}

// BenchmarkBusy is the cost of a waiter each time it asks.
func BenchmarkBusy(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "locks"), nil)
	mustAcquire(b, s, request("a"))
	for b.Loop() {
		if _, err := s.Acquire(b.Context(), store.AcquireRequest{Lease: request("a")}); err == nil {
			b.Fatal("granted a lock that is held")
		}
	}
}

func BenchmarkRenew(b *testing.B) {
	for _, n := range []int{1, 512} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := mustOpen(b, filepath.Join(b.TempDir(), "locks"), nil)
			var leases []store.Lease
			for i := range n {
				leases = append(leases, request(strconv.Itoa(i)))
				mustAcquire(b, s, leases[i])
			}
			for b.Loop() {
				for _, err := range s.Renew(b.Context(), leases) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkOpenClose is the cost of the store in each run of a command.
func BenchmarkOpenClose(b *testing.B) {
	path := filepath.Join(b.TempDir(), "locks")
	for b.Loop() {
		s, err := Open(b.Context(), urlOf(path), nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHandOn passes a lock round a ring of waiters: of one store, and of several.
func BenchmarkHandOn(b *testing.B) {
	for _, stores := range []int{1, 4} {
		b.Run(strconv.Itoa(stores), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "locks")
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for range stores {
				s := mustOpen(b, path, nil)
				for range 8 / stores {
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							r := request("a")
							if _, err := s.Wait(b.Context(), store.WaitRequest{Lease: r}, nil); err != nil {
								b.Error(err)
								return
							}
							mustRelease(b, s, r)
						}
					})
				}
			}
			wg.Wait()
		})
	}
}

func init() { roles["turns"] = turns }

// turns acquires and releases the lock for a given time, and writes the token of each turn
// to its output.
func turns(args []string) error {
	lasts, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := Open(ctx, urlOf(args[0]), nil)
	if err != nil {
		return err
	}
	defer s.Close()
	ready()
	var tokens []byte
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		r := request("a")
		g, err := s.Wait(ctx, store.WaitRequest{Lease: r}, nil)
		if err != nil {
			return err
		}
		tokens = binary.BigEndian.AppendUint64(tokens, uint64(g.Token))
		if err := s.Release(ctx, store.ReleaseRequest{Lease: r}); err != nil {
			return err
		}
	}
	_, err = os.Stdout.Write(tokens)
	return err
}

// BenchmarkHandOff passes a lock round a ring of processes, all of which want it
// again at once. It reports turns a second, how many of them followed a turn of
// another process, and how many of a thousand came before each of the others had
// one: the lock went round faster than one of them was back in the queue.
func BenchmarkHandOff(b *testing.B) {
	for _, processes := range []int{2, 16, 128} {
		b.Run(fmt.Sprint(processes), func(b *testing.B) {
			const lasts = 2 * time.Second
			path := filepath.Join(b.TempDir(), "locks")
			for b.Loop() {
				var all []*child
				for range processes {
					c := start(b, "turns", path, lasts.String())
					c.line(b)
					all = append(all, c)
				}
				for _, c := range all {
					c.begin(b)
				}
				type turn struct {
					token uint64
					by    int
				}
				var turns []turn
				for i, c := range all {
					tokens, err := io.ReadAll(c.out)
					if err != nil {
						b.Fatal(err)
					}
					for ; len(tokens) >= 8; tokens = tokens[8:] {
						turns = append(turns, turn{binary.BigEndian.Uint64(tokens), i})
					}
					c.end(b)
				}
				slices.SortFunc(turns, func(x, y turn) int { return int(x.token) - int(y.token) })
				last, early, handed := make([]int, processes), 0, 0
				for i, t := range turns {
					if i > 0 && turns[i-1].by != t.by {
						handed++
					}
					if i > processes && i-last[t.by] < processes-1 {
						early++
					}
					last[t.by] = i
				}
				b.ReportMetric(float64(len(turns))/lasts.Seconds(), "turns/s")
				b.ReportMetric(float64(handed)/lasts.Seconds(), "hand-offs/s")
				b.ReportMetric(1000*float64(early)/float64(len(turns)), "early/1000")
			}
		})
	}
}
