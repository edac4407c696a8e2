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
	// Waiters are how the owners of places are told that their turn has come. Those
	// that poll have none. A version that does not know of them drops them, upon
	// which all poll.
	Waiters map[string]waiter `json:"waiters,omitempty"`
}

// waiter is one wait under way in some process.
type waiter struct {
	// Socket is the name of the process's socket.
	Socket string `json:"socket"`
	// Wait is a name made up for this wait: an owner may come again, and must not
	// take a message to its former self for one to it.
	Wait string `json:"wait"`
}

// with is the row after a step of the rule. Waiters of owners that no longer wait
// are forgotten.
func (r row) with(after rule.Record) row {
	next := row{Record: after}
	for _, p := range after.Line {
		if w, ok := r.Waiters[p.Owner]; ok {
			next.told(p.Owner, w)
		}
	}
	return next
}

// told notes how owner is told. The row must not share its map with another.
func (r *row) told(owner string, w waiter) {
	if r.Waiters == nil {
		r.Waiters = make(map[string]waiter, len(r.Line))
	}
	r.Waiters[owner] = w
}

func (r row) encode() (string, error) {
	text, err := json.Marshal(r)
	return string(text), err
}

// decode reads what encode has written. Anything else is an error: taken for a
// free lock, it could be one that somebody holds.
func decode(name string, text []byte) (r row, err error) {
	if err = json.Unmarshal(text, &r); err == nil {
		err = r.Check()
	}
	if err == nil && r.Idle() {
		err = errors.New("there is nothing in it")
	}
	if err != nil {
		return row{}, fmt.Errorf("the record of lock %q cannot be read: %w: once nobody holds the lock, delete its row from leasehold_locks", name, err)
	}
	return r, nil
}
