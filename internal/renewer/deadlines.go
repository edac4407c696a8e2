package renewer

import "github.com/leasehold-dev/leasehold/internal/clock"

// deadline is when a lease wants attention.
type deadline[T any] struct {
	at clock.Instant
	l  *Lease[T]
}

// deadlines are a heap of leases, the one that wants attention first on top. With
// very many of them most of the cost is memory that has to be fetched: so a lease
// has four below it, side by side, and those that have to make room are moved once
// each.
type deadlines[T any] []deadline[T]

// fan is how many leases each has below it.
const fan = 4

// add keeps l, which has a deadline, from now on.
func (d *deadlines[T]) add(l *Lease[T]) {
	at, _ := l.Next()
	*d = append(*d, deadline[T]{at, l})
	d.up(len(*d) - 1)
}

// move gives the lease at i another deadline.
func (d deadlines[T]) move(i int, at clock.Instant) {
	later := at > d[i].at
	if d[i].at = at; later {
		d.down(i)
	} else {
		d.up(i)
	}
}

// remove drops the lease at i.
func (d *deadlines[T]) remove(i int) {
	old := *d
	last := len(old) - 1
	old[i].l.at = -1
	moved := old[last]
	old[last] = deadline[T]{}
	*d = old[:last]
	if i < last {
		at := moved.at
		moved.at = old[i].at // as if it had been there
		old[i] = moved
		d.move(i, at)
	}
}

// put has w at i.
func (d deadlines[T]) put(i int, w deadline[T]) {
	d[i] = w
	w.l.at = i
}

// up brings the lease at i to where no later one is above it.
func (d deadlines[T]) up(i int) {
	w := d[i]
	for i > 0 {
		above := (i - 1) / fan
		if d[above].at <= w.at {
			break
		}
		d.put(i, d[above])
		i = above
	}
	d.put(i, w)
}

// down brings the lease at i to where no earlier one is below it.
func (d deadlines[T]) down(i int) {
	w := d[i]
	for {
		below := i*fan + 1
		if below >= len(d) {
			break
		}
		first := below
		for j := below + 1; j < min(below+fan, len(d)); j++ {
			if d[j].at < d[first].at {
				first = j
			}
		}
		if d[first].at >= w.at {
			break
		}
		d.put(i, d[first])
		i = first
	}
	d.put(i, w)
}
