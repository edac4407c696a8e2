package conn

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A queue does what a slice does.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var want []int
		for i, step := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 200).Draw(t, "steps") {
			switch v, ok := 0, false; {
			case step < 4:
				q.Push(i)
				want = append(want, i)
			case step < 8:
				if v, ok = q.Pop(); ok != (len(want) > 0) || ok && v != want[0] {
					t.Fatalf("popped %d, %v; want the first of %d", v, ok, want)
				} else if ok {
					want = want[1:]
				}
			case step == 8:
				passes := func(v int) bool { return v%4 != 0 }
				q.Advance(func(v *int) bool { return passes(*v) })
				for i := len(want) - 1; i > 0 && passes(want[i-1]); i-- {
					want[i-1], want[i] = want[i], want[i-1]
				}
			default:
				q.Remove(func(v *int) bool { return *v%3 == 0 })
				want = slices.DeleteFunc(want, func(v int) bool { return v%3 == 0 })
			}
			var all []int
			for v := range q.All {
				all = append(all, *v)
			}
			if !slices.Equal(all, want) || q.Len() != len(want) {
				t.Fatalf("%d calls in the queue: %d, want %d", q.Len(), all, want)
			}
			if f := q.Front(); (f != nil) != (len(want) > 0) || f != nil && *f != want[0] {
				t.Fatalf("front %v, want the first of %d", f, want)
			}
		}
	})
}
