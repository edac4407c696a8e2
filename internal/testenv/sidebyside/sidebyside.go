// Package sidebyside measures ways to do one thing in turns, so that whatever else the machine does
// meets all of them.
package sidebyside

import (
	"flag"
	"slices"
	"sync"
	"testing"
	"time"
)

// Way is one way to do the thing.
type Way struct {
	Name string
	Do   func(i int) error // called by the goroutine with number i
}

// Cost is what doing things uses up.
type Cost struct {
	Unit  string
	Total func() float64 // until now
}

// rounds is how often each way has its turn: once if the benchmarks are only to show that they run.
func rounds() int {
	if flag.Lookup("test.benchtime").Value.String() == "1x" {
		return 1
	}
	return 5
}

// Measure has goroutines do the thing b.N times each in one way after the other, and that several times. It
// reports the medians for one thing: the time, each of the costs, and how many times as many
// things were done in each later way as in the first one.
func Measure(b *testing.B, goroutines int, ways []Way, costs ...Cost) {
	b.Helper()
	figures := map[string][]float64{}
	for range rounds() {
		var first float64
		for n, w := range ways {
			before := make([]float64, len(costs))
			for i, c := range costs {
				before[i] = c.Total()
			}
			began := time.Now()
			share(b, goroutines, w)
			took := float64(time.Since(began))
			things := float64(b.N * goroutines)
			note := func(unit string, v float64) { figures[w.Name+"-"+unit] = append(figures[w.Name+"-"+unit], v) }
			note("ms/op", took/float64(time.Millisecond)/things)
			for i, c := range costs {
				note(c.Unit+"/op", (c.Total()-before[i])/things)
			}
			if n == 0 {
				first = took
			} else {
				note("to-"+ways[0].Name, first/took)
			}
		}
	}
	b.ReportMetric(0, "ns/op") // which would be that of all rounds together
	for unit, all := range figures {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], unit)
	}
}

// share has each goroutine do the thing b.N times.
func share(b *testing.B, goroutines int, w Way) {
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for range b.N {
				if err := w.Do(i); err != nil {
					b.Errorf("%s: %v", w.Name, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
