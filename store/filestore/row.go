package filestore

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// row is what the tables keep of a lock.
type row struct {
	rule.Record
	// Waiters says how to notify the owners of places. Waiters that poll have no
	// entry. A version that does not know this field drops it, and then all poll.
	Waiters map[string]waiter `json:"waiters,omitempty"`
}

// waiter is one pending wait in some process.
type waiter struct {
	// Socket is the name of the process's socket.
	Socket string `json:"socket"`
	// Wait is a random name for this wait. An owner may wait again, and must not
	// take a message for its earlier wait for a new one.
	Wait string `json:"wait"`
}

// with returns the row after a step of the rule. It drops entries of owners that
// no longer wait.
func (r row) with(after rule.Record) row {
	next := row{Record: after}
	for _, p := range after.Queue {
		if w, ok := r.Waiters[p.Owner]; ok {
			next.told(p.Owner, w)
		}
	}
	return next
}

// waiting returns the row with me for owner; the zero value means that owner polls. The row must
// not share its map with another.
func (r row) waiting(owner string, me waiter) row {
	delete(r.Waiters, owner)
	if me != (waiter{}) {
		r.told(owner, me)
	}
	return r
}

// told records how to notify owner. The row must not share its map with another.
func (r *row) told(owner string, w waiter) {
	if r.Waiters == nil {
		r.Waiters = make(map[string]waiter, len(r.Queue))
	}
	r.Waiters[owner] = w
}

func (r row) encode() (string, error) {
	if text, ok := r.plainText(); ok {
		return text, nil
	}
	text, err := json.Marshal(r)
	return string(text), err
}

// decode reads what encode has written. Anything else is an error: if it were
// taken for a free lock, two owners could hold it.
func decode(name string, text []byte) (_ row, err error) {
	r, ok := parsePlain(text)
	if !ok {
		err = json.Unmarshal(text, &r)
	}
	if err == nil {
		err = r.Check()
	}
	if err == nil && r.Idle() {
		err = errors.New("it is empty")
	}
	if err != nil {
		return row{}, fmt.Errorf("the record of lock %q cannot be read: %w: once nobody holds the lock, delete its row from leasehold_locks", name, err)
	}
	return r, nil
}
