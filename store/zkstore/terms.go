package zkstore

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// slot returns the slot of the place c.
func (r record) slot(c numbered) int64 {
	if c.spec == rule.ReadWrite {
		return int64(uint32(c.seq)) // stays if a writer becomes a reader
	}
	for _, s := range r.Seats {
		if s.Seq == c.seq {
			return s.Slot
		}
	}
	return 0
}

// first returns the record of the place c, made by the transaction czxid, as that of the
// first holder.
func (r record) first(c numbered, czxid int64) record {
	if c.spec.Shared {
		r.Token = tokenOf(r, czxid)
	}
	if hasSeats(c.spec) {
		r.Seats = []seat{{c.seq, 0}}
	}
	r.Agreed = true
	return r
}

// behind returns the record of the holder q[i], where before is that of the holder before
// it, which has agreed.
func (r record) behind(before record, q queue, i int) record {
	if q[i].spec.Shared {
		r.Token = before.Token
	}
	if hasSeats(q[i].spec) {
		r.Seats = nil
		for _, s := range before.Seats {
			if slices.ContainsFunc(q[:i], func(c numbered) bool { return c.seq == s.Seq }) {
				r.Seats = append(r.Seats, s)
			}
		}
		r.Seats = append(r.Seats, seat{q[i].seq, freeSlot(r.Seats)})
	}
	r.Agreed = true
	return r
}

// freeSlot returns the smallest slot that is not taken.
func freeSlot(taken []seat) (free int64) {
	slices.SortFunc(taken, func(a, b seat) int { return cmp.Compare(a.Slot, b.Slot) })
	for _, s := range taken {
		if s.Slot == free {
			free++
		}
	}
	return free
}
