package sim

import (
	"fmt"
	"runtime"
	"testing"
)

// One seed is one history, whatever the scheduler does.
func TestOneSeedOneHistory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, seed := range []uint64{7, 29} {
		s := OfSeed(seed)
		digests := map[uint64]int{}
		for i := range 60 {
			runtime.GOMAXPROCS(1 + i%4)
			digests[Run(t, s, Shipped(), false).Digest]++
		}
		if len(digests) != 1 {
			t.Errorf("60 runs of seed %d gave %d histories: %v", seed, len(digests), digests)
		}
	}
}

func TestTwice(t *testing.T) {
	for i := range uint64(*seeds) {
		s := OfSeed(i + *first)
		if a, b := Run(t, s, Shipped(), false).Digest, Run(t, s, Shipped(), false).Digest; a != b {
			fmt.Println("seed", i+*first)
			t.Fail()
		}
	}
}
