package leasehold

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/store"
)

// claim is what a lease takes of a lock: all of a mutex, some permits of a
// semaphore, one of many places for readers, or all of them for a writer. The
// zero claim is that of a mutex.
type claim struct {
	kind   store.Kind
	weight int64 // of the kind's limit; 0 means 1
	anew   bool  // a lease that the context carries is not re-entered
}

// several reports whether others can hold the lock at the same time.
func (c claim) several() bool { return !c.kind.IsMutex() }

// check returns c with the weight that the options ask for, or why a store of those
// capabilities cannot grant that of the lock called name.
func (c claim) check(name string, weight int, caps store.Caps) (claim, error) {
	switch {
	case c.kind.Limit < 0:
		return c, invalid("lock %q: a semaphore needs at least one permit", name)
	case weight < 0:
		return c, invalid("Weight is %d: it cannot be negative", weight)
	case weight > 0 && (c.kind.Limit == 0 || c.kind.Shared):
		return c, invalid("lock %q has Weight %d: only the leases of a semaphore have a weight, and this is a %v", name, weight, c.kind)
	case weight > 0:
		c.weight = int64(weight)
	}
	err := store.Lease{Name: name, Kind: c.kind, Weight: c.weight}.CheckKind(caps)
	if !c.several() {
		c.kind, c.weight = store.Kind{}, 0
	}
	return c, err
}

// reenters returns nil if a holder with the lease r has what c and require ask for.
func (c claim) reenters(r store.Lease, require store.Class) error {
	has, wants := max(r.Weight, 1), max(c.weight, 1)
	switch {
	case r.Kind.Normal() != c.kind.Normal():
		return &store.KindError{Name: r.Name, Asked: c.kind, InUse: r.Kind, Holder: store.DecodeHolder(r.Owner, r.Meta)}
	case wants > has:
		return invalid("lock %q: the context carries a reader's lease, which cannot become a writer's: two readers that both wanted that would wait for each other for ever. Release it, acquire the lock as the writer, and read again", r.Name)
	case require > r.Require:
		return fmt.Errorf("%w: lock %q requires %v, and the lease in the context was acquired with %v: require %[3]v where it is acquired", ErrUnsupported, r.Name, require, r.Require)
	}
	return nil
}
