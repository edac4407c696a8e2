package etcdstore

import (
	"encoding/json"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// successor is a place that gets the lock later. Process is empty if it is that of a
// native client, which watches the place before it.
type successor struct {
	Suffix  string `json:"k"`
	Create  int64  `json:"c"`
	Process string `json:"p,omitempty"`
}

// message is written to the inbox of a process: one of its places has been given the lock or has to
// look, or the lease of that place was broken. It is a hint, since a user with rights to other locks
// can write it as well: what it says is read from the lock itself.
type message struct {
	Create int64 `json:"c"` // of the place
	// The fields up to Resized are for places of locks that several can hold. A message tells
	// them to look. With Entered, the transaction has let the place in, with Slot. Contended says
	// that others wait behind. Resized says that Resize removed the place.
	Entered   bool  `json:"e,omitempty"`
	Slot      int64 `json:"s,omitempty"`
	Contended bool  `json:"b,omitempty"`
	Resized   bool  `json:"r,omitempty"`
	// Broken is the owner of the place, whose lease was broken. Only Create is set beside it.
	Broken string `json:"x,omitempty"`
}

func (m message) encode() string { return encode(m) }

func (n successor) encode() string { return encode(n) }

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("leasehold: encoding strings and numbers failed: " + err.Error())
	}
	return string(b)
}

// successors returns the places of entries, which are in order.
func successors(prefix string, entries []entry) []successor {
	var all []successor
	for _, e := range entries {
		all = append(all, successor{Suffix: e.key[len(prefix):], Create: e.create, Process: e.Process})
	}
	return all
}

// lease returns the lease that the place is named after.
func (n successor) lease() clientv3.LeaseID {
	id, err := strconv.ParseUint(n.Suffix, 16, 64)
	if err != nil {
		return clientv3.NoLease
	}
	return clientv3.LeaseID(id)
}

// box returns the key in which a place is notified of its grant.
func (l layout) box(process, suffix string) string { return l.inbox(process) + suffix }

// handOver gives the lock to n in the transaction that deletes the place before it.
func (l layout) handOver(prefix string, n successor) []operation {
	if n.Process == "" {
		return nil
	}
	return []operation{
		touch(prefix + n.Suffix), // its revision is the token
		put(l.box(n.Process, n.Suffix), message{Create: n.Create}.encode(), n.lease()),
	}
}
