package waits

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Positions are those of a list, in whatever order waiters join and leave.
func TestPositions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var p positions
		var list []*waiter
		wentFirst := false
		for range 400 {
			switch n := rng.IntN(10); {
			case n < 5 || len(list) == 0:
				w := &waiter{}
				p.add(w, false)
				list = append(list, w)
			case n == 5 && !wentFirst:
				w := &waiter{}
				p.add(w, true)
				list, wentFirst = slices.Insert(list, 0, w), true
			default:
				i := rng.IntN(len(list))
				p.remove(list[i])
				list = slices.Delete(list, i, i+1)
			}
			for i, w := range list {
				if got := p.ahead(w); got != i {
					t.Fatalf("%d of %d are ahead, want %d", got, len(list), i)
				}
			}
		}
	}
}
