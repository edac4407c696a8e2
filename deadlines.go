package leasehold

import "github.com/leasehold-dev/leasehold/internal/clock"

// wanting is a hold that wants attention then.
type wanting struct {
	at clock.Instant
	h  *hold
}

// deadlines are a heap of holds, the one that wants attention first on top. With
// very many of them most of the cost is memory that has to be fetched: so a hold
// has four below it, side by side, and those that have to make room are moved once
// each.
type deadlines []wanting

// fan is how many holds each has below it.
const fan = 4

// add keeps h, which has a deadline, from now on.
func (d *deadlines) add(h *hold) {
	at, _ := h.fsm.Next()
	*d = append(*d, wanting{at, h})
	d.up(len(*d) - 1)
}

// move gives the hold at i another deadline.
func (d deadlines) move(i int, at clock.Instant) {
	later := at > d[i].at
	if d[i].at = at; later {
		d.down(i)
	} else {
		d.up(i)
	}
}

// remove drops the hold at i.
func (d *deadlines) remove(i int) {
	old := *d
	last := len(old) - 1
	old[i].h.at = -1
	moved := old[last]
	old[last] = wanting{}
	*d = old[:last]
	if i < last {
		at := moved.at
		moved.at = old[i].at // as if it had been there
		old[i] = moved
		d.move(i, at)
	}
}

// put has w at i.
func (d deadlines) put(i int, w wanting) {
	d[i] = w
	w.h.at = i
}

// up brings the hold at i to where no later one is above it.
func (d deadlines) up(i int) {
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

// down brings the hold at i to where no earlier one is below it.
func (d deadlines) down(i int) {
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
