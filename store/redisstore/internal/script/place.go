package script

import (
	"cmp"
	"strconv"
)

// place is a waiter's place in the queue as a request describes it. The request's argument
// has the fields of the stored place (see readPlace.lua) in their order, from the no-push
// flag to the channel. It has a rank where the stored place has its end and its ticket.
type place struct {
	rank   uint64 // when its owner began to wait: the ticket that it asks for
	stamp  uint64 // of the request; the push of a grant repeats it
	shared bool   // several can hold the lock
	barge  bool   // only notify it that the lock is free
	// guarded is set if the lock may be granted only by a server that has forgotten
	// nothing; fingerprint is that of the client's membership.
	guarded     bool
	fingerprint string
	channel     string // for the push
}

// rankDigits is the least number of digits of a rank.
const rankDigits = 16

// append appends the argument, without the no-push flag set; see Command.NoPushAt.
func (p place) append(b []byte) []byte {
	b = append(b, '0')
	var digits [20]byte
	rank := strconv.AppendUint(digits[:0], p.rank, 10)
	for range rankDigits - len(rank) {
		b = append(b, '0')
	}
	b = append(append(b, rank...), ' ')
	b = append(strconv.AppendUint(b, p.stamp, 10), ' ')
	lock, flags := "m ", ""
	if p.shared {
		lock = "k "
	}
	b = append(b, lock...)
	if p.barge {
		flags = "b"
	}
	if p.guarded {
		flags += "g"
	}
	b = append(append(append(b, cmp.Or(flags, "-")...), p.fingerprint...), ' ')
	return append(b, p.channel...)
}
