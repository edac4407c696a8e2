package sim

import (
	"maps"
	"runtime"
	"slices"
	"testing"
)

// A seed always gives the same history, whatever the scheduler does, unless two waiters of a
// process are due at the same nanosecond. On a busy machine 3 of 1,200 runs had another
// history, so more than 2 of 8 runs are less likely than one in a million. A mistake, such as
// a loop over a map, gives nearly as many histories as runs.
func TestOneSeedOneHistory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	s := read(t, "testdata/kept/many-troubles.json")
	s.Seed = 202 // with its own, two waiters of a process send their first requests together, once it has seen the servers
	digests := map[uint64]int{}
	const runs = 8
	for i := range runs {
		runtime.GOMAXPROCS(1 + i%4)
		digests[Run(t, s, Shipped(), false).Digest]++
	}
	most := slices.Max(slices.Collect(maps.Values(digests)))
	if most < runs-2 {
		t.Errorf("%d runs of seed %d gave %d histories, the most frequent one %d times, want %d times at least: %v", runs, s.Seed, len(digests), most, runs-2, digests)
	}
}

// A seed gives the same history with every kind of fault, whether or not the history is
// recorded. Other seeds give other histories, so that the digest tells them apart.
func TestHistoriesRepeat(t *testing.T) {
	seen := map[uint64]uint64{}
	for seed := range uint64(12) {
		s := OfSeed(1000 + seed)
		r := Run(t, s, Shipped(), false)
		if again := Run(t, s, Shipped(), true).Digest; again != r.Digest {
			t.Errorf("seed %d: two runs have the digests %x and %x, want the same", s.Seed, r.Digest, again)
		}
		if other, ok := seen[r.Digest]; ok {
			t.Errorf("seeds %d and %d have the same digest %x, want different ones", s.Seed, other, r.Digest)
		}
		seen[r.Digest] = s.Seed
	}
}
