package rule

import (
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Slots is a set of slots as text: ascending decimal numbers with commas between them,
// such as "0,3". It is empty if no slots are meant.
//
// One store gives every lease one slot, to tell holders apart. Over several nodes a lease
// of a semaphore has as many slots as its weight, and each slot is a lock of its own: a
// lease counts on nodes that gave it the same ones. That keeps the limit exact, which a
// majority of counters would not. See Ask.Numbered and Ask.Exact.
type Slots string

// SlotsOf returns the set of those numbers, which are in ascending order.
func SlotsOf(numbers ...int64) Slots {
	text := make([]byte, 0, 2*len(numbers))
	for i, n := range numbers {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, n, 10)
	}
	return Slots(text)
}

// Numbers returns the numbers of the set; false if s is no set.
func (s Slots) Numbers() (numbers []int64, ok bool) {
	if s == "" {
		return nil, true
	}
	for text := range strings.SplitSeq(string(s), ",") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || len(numbers) > 0 && n <= numbers[len(numbers)-1] {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	return numbers, SlotsOf(numbers...) == s
}

// MaxSlots is the largest limit of a semaphore whose permits are numbered one by one.
const MaxSlots = 1024

// HasSlots reports whether a lease of that kind can have as many slots as its weight.
func (s Spec) HasSlots() bool { return !s.Shared && s.Limit > 1 && s.Limit <= MaxSlots }

// taken returns the slots of all leases in ascending order.
func (r Record) taken() []int64 {
	taken := make([]int64, 0, len(r.Holds))
	for _, h := range r.Holds {
		numbers, _ := h.Slots.Numbers()
		if len(numbers) == 0 {
			numbers = []int64{h.Slot}
		}
		taken = append(taken, numbers...)
	}
	slices.Sort(taken)
	return taken
}

// withSlots returns h with slots that no lease has: the smallest or, if every permit is
// numbered, those wanted if they are free.
func (r Record) withSlots(h Hold, numbered bool, want Slots) Hold {
	if !numbered || !r.Spec.HasSlots() {
		h.Slot = smallestFree(r.taken(), 1)[0]
		return h
	}
	numbers, _ := want.Numbers()
	if want == "" || !r.free(want, h.Weight) {
		numbers = smallestFree(r.taken(), h.Weight)
	}
	h.Slot, h.Slots = numbers[0], SlotsOf(numbers...)
	return h
}

// smallestFree returns the n smallest numbers that are not in taken.
func smallestFree(taken []int64, n int64) (free []int64) {
	next := int64(0)
	for int64(len(free)) < n {
		for len(taken) > 0 && taken[0] < next {
			taken = taken[1:]
		}
		if len(taken) == 0 || taken[0] != next {
			free = append(free, next)
		}
		next++
	}
	return free
}

// Has reports whether these can be the slots of a lease of that weight.
func (s Spec) Has(slots Slots, weight int64) bool {
	numbers, ok := slots.Numbers()
	return ok && s.HasSlots() && int64(len(numbers)) == weight && numbers[weight-1] < s.Limit
}

// free reports whether a lease of that weight could have these slots.
func (r Record) free(s Slots, weight int64) bool {
	if !r.Spec.Has(s, weight) {
		return false
	}
	numbers, _ := s.Numbers()
	taken := r.taken()
	return !slices.ContainsFunc(numbers, func(n int64) bool {
		_, found := slices.BinarySearch(taken, n)
		return found
	})
}

// DropOthers ends the owner's lease if it has other slots than these. Over several nodes
// it is left of an attempt that has agreed on these with other nodes since. A store must
// call Advance afterwards. Empty slots are those of any lease. A lease that was broken stays: its
// owner gets no other before it ends.
func DropOthers(r Record, owner string, s Slots, now clock.Instant) Record {
	r = Expire(r, now)
	if i := r.hold(owner); s != "" && i >= 0 && r.Holds[i].Slots != s && !r.Holds[i].Broken {
		r.Holds = without(r.Holds, i)
	}
	return r
}
