package redisstore

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A queue does what a slice does.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue[int]
		var want []int
		for i, push := range rapid.SliceOfN(rapid.Bool(), 0, 200).Draw(t, "pushes") {
			if push {
				q.push(i)
				want = append(want, i)
			} else if v, ok := q.pop(); ok != (len(want) > 0) || ok && v != want[0] {
				t.Fatalf("popped %d, %v; want the first of %d", v, ok, want)
			} else if ok {
				want = want[1:]
			}
			var all []int
			for v := range q.all {
				all = append(all, *v)
			}
			if !slices.Equal(all, want) || q.n != len(want) {
				t.Fatalf("%d in it: %d, want %d", q.n, all, want)
			}
			if f := q.front(); (f != nil) != (len(want) > 0) || f != nil && *f != want[0] {
				t.Fatalf("front %v, want the first of %d", f, want)
			}
		}
	})
}
