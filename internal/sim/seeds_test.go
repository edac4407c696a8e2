package sim

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var (
	seeds = flag.Int("seeds", 200, "how many seeds TestSeeds runs")
	first = flag.Uint64("first", 1, "the first of them")
	seed  = flag.Uint64("seed", 0, "the seed TestSeed replays")
)

func TestSeed(t *testing.T) {
	s := OfSeed(*seed)
	r := Run(t, s, Shipped(), true)
	for _, l := range r.History {
		fmt.Println(l)
	}
	fmt.Println(s)
	fmt.Printf("%+v %v\n", r.Tally, r.Simulated)
	for _, v := range r.Violations {
		t.Error(v)
	}
}

func TestSeeds(t *testing.T) {
	began := time.Now()
	var sim time.Duration
	var all Tally
	bad := 0
	for i := range *seeds {
		n := *first + uint64(i)
		r := Run(t, OfSeed(n), Shipped(), false)
		sim += r.Simulated
		add(&all, r.Tally)
		if len(r.Violations) > 0 {
			bad++
			t.Errorf("seed %d: %v", n, r.Violations)
		}
	}
	d := time.Since(began)
	t.Logf("%d seeds, %d bad, %.1f simulated hours in %v, %.3f h/s %.0f events/s", *seeds, bad, sim.Hours(), d, sim.Hours()/d.Seconds(), float64(all.Events)/d.Seconds())
	t.Logf("%+v", all)
}
