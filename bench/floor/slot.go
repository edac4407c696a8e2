package floor

import (
	"sync/atomic"

	"github.com/leasehold-dev/leasehold/bench/resp"
)

// slot lets one goroutine wait for a majority. Late answers must not count for its next
// question, so each question has a number.
type slot struct {
	state atomic.Uint64 // number of the question <<32 | yes <<16 | no
	done  chan bool     // the verdict
}

// call is one question that a slot has asked.
type call struct {
	slot   *slot
	number uint32
	steps  int // if it is the first of a list: how many calls the list has
}

const (
	oneYes = 1 << 16
	oneNo  = 1
)

func newSlot() *slot { return &slot{done: make(chan bool, 1)} }

// ask begins a new question.
func (s *slot) ask() call {
	number := uint32(s.state.Load()>>32) + 1
	s.state.Store(uint64(number) << 32)
	return call{slot: s, number: number}
}

// answer counts one server's answer, and wakes the goroutine when it decides. It
// ignores later answers.
func (c call) answer(r resp.Reply, need, all int) {
	one := uint64(oneNo)
	if granted(r) {
		one = oneYes
	}
	for {
		state := c.slot.state.Load()
		if uint32(state>>32) != c.number {
			return
		}
		if !c.slot.state.CompareAndSwap(state, state+one) {
			continue
		}
		state += one
		yes, no := int(state>>16&0xffff), int(state&0xffff)
		switch {
		case one == oneYes && yes == need:
			c.slot.done <- true
		case one == oneNo && no == all-need+1:
			c.slot.done <- false
		}
		return
	}
}

// granted: OK of SET, 1 of a script that deleted, a token of one that granted.
func granted(r resp.Reply) bool {
	return r.Kind == resp.Status || r.Kind == resp.Number && r.Number > 0
}
