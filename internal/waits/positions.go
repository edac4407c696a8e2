package waits

import "slices"

// positions tells how many waiters of a queue are ahead of one, in a time that hardly grows
// with their number. The waiters are numbered in their order. A Fenwick tree counts them by
// their numbers. The queues' mutex guards it.
type positions struct {
	at   []*waiter // by number; nil where nobody is
	tree []int32   // tree[i] is how many have the numbers i-(i&-i) to i-1
	room [fewPositions]*waiter
	sums [fewPositions + 1]int32
}

// fewPositions have room in positions itself: most queues have no more waiters.
const fewPositions = 4

// add puts w behind all others, or before them. The number 0 is kept for one that goes
// before them: that is the goroutine that asked first, while others joined.
func (p *positions) add(w *waiter, ahead bool) {
	switch {
	case p.tree == nil:
		p.at, p.tree = p.room[:1], p.sums[:]
	case len(p.at) == len(p.tree)-1 || ahead && p.at[0] != nil:
		p.renumber()
	}
	if ahead {
		p.at[0], w.number = w, 0
	} else {
		w.number = len(p.at)
		p.at = append(p.at, w)
	}
	p.count(w.number, 1)
}

func (p *positions) remove(w *waiter) {
	p.at[w.number] = nil
	p.count(w.number, -1)
}

// ahead returns how many come before w.
func (p *positions) ahead(w *waiter) (n int) {
	for i := w.number; i > 0; i -= i & -i {
		n += int(p.tree[i])
	}
	return n
}

func (p *positions) count(number int, d int32) {
	for i := number + 1; i < len(p.tree); i += i & -i {
		p.tree[i] += d
	}
}

// renumber makes room for as many as there are, and more. So it is seldom.
func (p *positions) renumber() {
	there := slices.DeleteFunc(slices.Clone(p.at), func(w *waiter) bool { return w == nil })
	size := 2 * max(len(there), fewPositions)
	p.at, p.tree = make([]*waiter, 1, size), make([]int32, size+1)
	for _, w := range there {
		w.number = len(p.at)
		p.at = append(p.at, w)
		p.count(w.number, 1)
	}
}
