package etcdstore

import (
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// layout says under which keys locks are. The keys of a lock are those of
// concurrency.Mutex and "etcdctl lock" for the same name: one for each owner that holds
// it or waits for it, named after a lease. The one with the lowest create revision owns
// the lock.
type layout struct{ base string }

// lock returns the prefix of the keys of a lock. No other lock's prefix begins with it.
func (l layout) lock(name string) string { return l.base + "/" + escape(name) + "/" }

// locks returns the prefix of the keys of all locks whose names begin with prefix.
func (l layout) locks(prefix string) string { return l.base + "/" + escape(prefix) }

// key returns the key that is named after a lease.
func (l layout) key(name string, id clientv3.LeaseID) string { return l.lock(name) + suffix(id) }

// suffix is how native clients name a key after a lease.
func suffix(id clientv3.LeaseID) string { return strconv.FormatInt(int64(id), 16) }

// inbox returns the prefix of the keys through which pushes reach a process: of its grants,
// and of breaks of its leases. No name of a lock is escaped to own.
func (l layout) inbox(process string) string { return l.inboxes() + process + "/" }

// inboxes returns the prefix of the keys of all inboxes.
func (l layout) inboxes() string { return l.base + "/" + own + "inbox/" }

// slots returns the prefix of the keys of the slots of a lock that several can hold.
func (l layout) slots(name string) string { return l.allSlots() + escape(name) + "/" }

// slot returns the key of a slot.
func (l layout) slot(name string, number int64) string {
	return l.slots(name) + strconv.FormatInt(number, 10)
}

func (l layout) allSlots() string { return l.base + "/" + own + "slots/" }

// note returns the key of the note about the lease that was broken last.
func (l layout) note(name string) string { return l.broken() + escape(name) + "/" }

// tombstone returns the key that refuses requests of an owner whose lease was broken, or of one
// of its attempts. Neither contains a space.
func (l layout) tombstone(name, owner, attempt string) string {
	if attempt != "" {
		owner += " " + attempt
	}
	return l.note(name) + owner
}

// tombstoneOf returns the key that refuses a request for a lease.
func (l layout) tombstoneOf(of store.Lease) string { return l.tombstone(of.Name, of.Owner, of.Attempt) }

// broken returns the prefix of all keys about broken leases.
func (l layout) broken() string { return l.base + "/" + own + "broken/" }

// floor returns the key of the smallest token.
func (l layout) floor() string { return l.base + "/" + own + "floor" }

// longest returns the key of the longest TTL.
func (l layout) longest() string { return l.base + "/" + own + "longest" }

const own = "!"

var (
	escaper   = strings.NewReplacer("%", "%25", "/", "%2F")
	unescaper = strings.NewReplacer("%25", "%", "%2F", "/", "%21", own)
)

// escape keeps a lock's name out of the keys of other locks: with slashes, keys of "a/b"
// would be among those of "a".
func escape(name string) string {
	name = escaper.Replace(name)
	if rest, found := strings.CutPrefix(name, own); found {
		name = "%21" + rest
	}
	return name
}

func unescape(name string) string {
	return unescaper.Replace(name)
}

// nameOf returns the lock to which a key belongs, and false if it belongs to none.
func (l layout) nameOf(key string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(key, l.base+"/")
	if !ok || strings.HasPrefix(rest, own) {
		return "", false
	}
	name, id, ok := strings.Cut(rest, "/")
	if !ok || id == "" || name == "" {
		return "", false
	}
	// A native client can use a name such as "100%", which is not how any name is escaped.
	is := unescape(name)
	return is, escape(is) == name
}

// tokenAt returns the token of an owner to which a lock came at a revision.
func tokenAt(floor fence.Token, revision int64) fence.Token {
	return floor + fence.Token(revision)
}
