package renewer

import "github.com/leasehold-dev/leasehold/internal/clock"

// deadline is when a lease has to be stepped next.
type deadline[T any] struct {
	at clock.Instant
	l  *Lease[T]
}

// deadlines is a heap of leases with the earliest deadline on top. With very many
// leases, most of the cost is fetching memory. So each lease has four children side by
// side, and an operation moves each lease at most once.
type deadlines[T any] []deadline[T]

// fan is the number of children of a lease.
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

// put stores w at index i.
func (d deadlines[T]) put(i int, w deadline[T]) {
	d[i] = w
	w.l.at = i
}

// up moves the lease at i up until its parent's deadline is not later.
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

// down moves the lease at i down until no child's deadline is earlier.
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
