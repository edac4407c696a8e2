package sim

import (
	"runtime"
	"testing"
)

// One seed is one history, whatever the scheduler does.
func TestOneSeedOneHistory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	s := read(t, "testdata/kept/many-troubles.json")
	digests := map[uint64]int{}
	for i := range 20 {
		runtime.GOMAXPROCS(1 + i%4)
		digests[Run(t, s, Shipped(), false).Digest]++
	}
	if len(digests) != 1 {
		t.Errorf("20 runs of seed %d gave %d histories: %v", s.Seed, len(digests), digests)
	}
}

// So it is with every kind of fault, and with the history kept or not. And
// other seeds give other histories, or the digest would say nothing.
func TestHistoriesRepeat(t *testing.T) {
	seen := map[uint64]uint64{}
	for seed := range uint64(12) {
		s := OfSeed(1000 + seed)
		r := Run(t, s, Shipped(), false)
		if again := Run(t, s, Shipped(), true).Digest; again != r.Digest {
			t.Errorf("seed %d: two runs, two histories", s.Seed)
		}
		if other, ok := seen[r.Digest]; ok {
			t.Errorf("seeds %d and %d: one history", s.Seed, other)
		}
		seen[r.Digest] = s.Seed
	}
}
