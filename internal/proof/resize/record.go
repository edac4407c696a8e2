package resize

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// now is the present moment on the clocks of all nodes.
const now = clock.Instant(1000 * time.Second)

const tick = time.Second

func ticks(n uint8) time.Duration { return time.Duration(n) * tick }

var owners = [maxLeases]string{"A", "B", "C"}

// slotsOf returns the slots of a lease with that one, plus one.
func slotsOf(slot uint8) rule.Slots {
	if slot == 0 {
		return ""
	}
	return rule.SlotsOf(int64(slot) - 1)
}

// semaphore returns what the node keeps.
func (nd *node) semaphore() (s semaphore) {
	s.setter = nd.setter
	if nd.kept > 0 {
		s.KeptUntil = now.Add(ticks(nd.kept))
	}
	if nd.seat.who > 0 {
		taken := nd.seat.rule()
		taken.Expiry = now.Add(ticks(nd.seatFor))
		s.Seat = &taken
	}
	if nd.number > 0 {
		s.Spec = spec(nd.number)
	}
	for i := range nd.cells {
		c := &nd.cells[i]
		if c.key > 0 {
			s.Holds = append(s.Holds, rule.Hold{Owner: owners[i], Weight: 1, Count: 1, Slot: int64(c.slot) - 1, Slots: slotsOf(c.slot), Expiry: now.Add(ticks(c.key))})
		}
		if c.tombstone > 0 {
			s.Tombstones = append(s.Tombstones, rule.Tombstone{Owner: owners[i], Expiry: now.Add(ticks(c.tombstone))})
		}
	}
	return s
}

// keep stores what the node keeps after an operation.
func (nd *node) keep(s *semaphore) {
	nd.kept, nd.seat, nd.seatFor = left(s.KeptUntil), seat{}, 0
	if s.Seat != nil && now < s.Seat.Expiry {
		nd.seat, nd.seatFor = seatOf(s.Seat), left(s.Seat.Expiry)
	}
	for i := range nd.cells {
		c := &nd.cells[i]
		c.key, c.slot, c.tombstone = 0, 0, 0
		if k := slices.IndexFunc(s.Holds, func(h rule.Hold) bool { return h.Owner == owners[i] }); k >= 0 {
			numbers, _ := s.Holds[k].Slots.Numbers()
			c.key, c.slot = left(s.Holds[k].Expiry), uint8(numbers[0])+1
		}
		if k := slices.IndexFunc(s.Tombstones, func(t rule.Tombstone) bool { return t.Owner == owners[i] }); k >= 0 {
			c.tombstone = left(s.Tombstones[k].Expiry)
		}
	}
	if nd.number, nd.setter = uint8(s.Spec.Limit), s.setter; s.unused() {
		nd.number, nd.setter = 0, 0
	}
}

// seatOf returns the seat that the rule has.
func seatOf(s *rule.Seat) seat {
	return seat{s.Who[0] - '0', uint8(s.From.Limit), uint8(s.To.Limit), s.HasSet}
}

// left returns for how many ticks it is not yet t.
func left(t clock.Instant) uint8 { return uint8(max(t.Sub(now), 0) / tick) }

// pass lets a tick pass at the node.
func (nd *node) pass() {
	for _, t := range []*uint8{&nd.quarantined, &nd.kept, &nd.seatFor} {
		*t -= min(*t, 1)
	}
	for i := range nd.cells {
		c := &nd.cells[i]
		c.key, c.tombstone = c.key-min(c.key, 1), c.tombstone-min(c.tombstone, 1)
	}
	s := nd.semaphore()
	nd.keep(&s)
}

// crash makes the node forget the lock.
func (nd *node) crash(quarantine uint8) {
	nd.quarantined = quarantine
	nd.keep(&semaphore{})
}
