package zkstore

import (
	"encoding/json"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// The size of a semaphore is in the names of its places, which cannot change. Resize
// writes into their parent node that the places up to a number count as those of a
// semaphore of another size. A client that finds a semaphore's place reads that as well.
// A list of the places shows whether the parent node has data.

// resize says that the places up to the number Until that were of a semaphore of From
// permits are of one of To permits.
type resize struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Until int32 `json:"until"`
}

// dirRecord is the data of the node that has the places.
type dirRecord struct {
	Resized []resize `json:"resized,omitempty"`
	// Broken is set once a lease of the lock was broken. The notes say which one.
	Broken bool `json:"broken,omitempty"`
}

// decodeDir returns what the data says. Data of another kind of client says nothing.
func decodeDir(data []byte) dirRecord {
	var r dirRecord
	if json.Unmarshal(data, &r) != nil {
		return dirRecord{}
	}
	return r
}

func (r dirRecord) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic("zkstore: encoding numbers failed: " + err.Error())
	}
	return b
}

// applyTo returns the queue with the kinds that its places have now.
func (r dirRecord) applyTo(q queue) queue {
	q = slices.Clone(q)
	for i := range q {
		for _, z := range r.Resized {
			if q[i].seq-z.Until <= 0 && q[i].spec == rule.Semaphore(z.From) {
				q[i].spec, q[i].resized = rule.Semaphore(z.To), true
			}
		}
	}
	return q
}

// add returns the record after a further resize of the semaphore whose places are q. It
// forgets those of which no place is left.
func (r dirRecord) add(from, to rule.Spec, q queue) dirRecord {
	next := dirRecord{Broken: r.Broken}
	for _, z := range r.Resized {
		if q[0].seq-z.Until <= 0 {
			next.Resized = append(next.Resized, z)
		}
	}
	next.Resized = append(next.Resized, resize{from.Limit, to.Limit, q[len(q)-1].seq})
	return next
}

// hasSized reports whether the queue has a place of a semaphore.
func (q queue) hasSized() bool {
	return slices.ContainsFunc(q, func(c numbered) bool { return hasSeats(c.spec) })
}
