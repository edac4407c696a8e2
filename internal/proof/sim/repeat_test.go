package sim

import (
	"path/filepath"
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

// The scripts that show what is pending have the kinds of fault that seeds do not.
func TestPendingRepeats(t *testing.T) {
	files, _ := filepath.Glob("testdata/pending/*.json")
	for _, f := range files {
		s := read(t, f)
		if Run(t, s, Switches{Patient: true}, false).Digest != Run(t, s, Switches{Patient: true}, true).Digest {
			t.Errorf("%s: two runs, two histories", f)
		}
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
