package store

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/excerpt"
)

// Kind is the kind of a lock: how much of it can be held at once. All requests
// for one lock must name the same kind while it is held or waited for. The zero
// Kind is a mutex.
//
//	mutex        Kind{}          one holder
//	semaphore    Semaphore(n)    holders whose weights add up to at most n
//	read-write   ReadWrite       readers of weight 1, or a writer of weight ReadWriteLimit
type Kind struct {
	// Limit is the largest sum of the weights of all holders. Zero means 1.
	Limit int64
	// Shared means that grants of less than the whole limit share a token with the
	// others that are held at the same time. Readers that hold the lock together
	// have one token, between those of the writers before and after them. Over several
	// nodes they may have different ones, all of which are between those.
	Shared bool
}

// ReadWriteLimit is the limit of a read-write lock and the weight of its writer:
// more than the number of readers can ever be.
const ReadWriteLimit = 1 << 40

// ReadWrite is the kind of a read-write lock.
var ReadWrite = Kind{Limit: ReadWriteLimit, Shared: true}

// Semaphore returns the kind of a lock with n permits.
func Semaphore(n int64) Kind { return Kind{Limit: n} }

// Normal returns k with the limit that a zero Limit stands for.
func (k Kind) Normal() Kind {
	if k.Limit == 0 {
		k.Limit = 1
	}
	return k
}

// IsMutex reports whether k is the kind of a lock with one holder at a time.
func (k Kind) IsMutex() bool { return k.Normal() == Kind{Limit: 1} }

// String returns what people call the kind, such as "semaphore of 3".
func (k Kind) String() string {
	switch {
	case k.IsMutex():
		return "mutex"
	case k == ReadWrite:
		return "read-write lock"
	case k.Shared:
		return fmt.Sprintf("read-write lock for %d readers", k.Limit)
	}
	return fmt.Sprintf("semaphore of %d", k.Limit)
}

// SharesToken reports whether the lease shares its token with others, as that of a
// reader does. It then has no further tokens.
func (l Lease) SharesToken() bool {
	return l.Kind.Shared && max(l.Weight, 1) < l.Kind.Normal().Limit
}

// CheckKind returns nil if a store of those capabilities keeps locks of l's kind and
// l's weight fits. Otherwise the error matches ErrInvalid, or ErrUnsupported and
// names the store and the kind. It reads no other field but the name.
func (l Lease) CheckKind(c Caps) error {
	switch k := l.Kind.Normal(); {
	case k.Limit < 0:
		return fmt.Errorf("%w: a lock with a limit of %d: the minimum is 1", ErrInvalid, k.Limit)
	case l.Weight < 0 || l.Weight > k.Limit:
		return fmt.Errorf("%w: weight %d: a %v has room for 1 to %d", ErrInvalid, l.Weight, k, k.Limit)
	case !k.IsMutex() && c.MutexesOnly:
		return fmt.Errorf("%w: lock %q: %s keeps mutexes, and no %v", ErrUnsupported, excerpt.AtMost(l.Name, mostQuoted), c.Engine, k)
	case !k.Shared && c.MaxPermits > 0 && k.Limit > c.MaxPermits:
		return fmt.Errorf("%w: lock %q: %s over %d servers keeps semaphores of at most %d permits, each of which is a lock of its own there, and no %v", ErrUnsupported, excerpt.AtMost(l.Name, mostQuoted), c.Engine, c.Nodes, c.MaxPermits, k)
	}
	return nil
}

// HeavierError returns the error with which a store refuses a request, such as "acquire",
// of an owner that already has a lease of less weight than l. It matches ErrInvalid.
func HeavierError(request string, l Lease) error {
	return fmt.Errorf("%w: %s %q with weight %d: the owner already has a lease of less weight, and a lease does not grow", ErrInvalid, request, l.Name, l.Weight)
}

// KindError reports that a lock is in use as another kind than the one asked for.
type KindError struct {
	// Name is the name of the lock.
	Name string
	// Asked is the kind that was asked for, and InUse the one that is in use.
	Asked, InUse Kind
	// Holder holds the lock as InUse, or waits for it.
	Holder Holder
}

func (e *KindError) Error() string {
	return fmt.Sprintf("lock %q is in use as a %v by %s, and was asked for as a %v", e.Name, e.InUse, e.Holder, e.Asked)
}

// Is reports whether target is ErrKindMismatch.
func (e *KindError) Is(target error) bool { return target == ErrKindMismatch }
