package leasehold

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/store"
)

// share is what a lease takes of a lock: all of a mutex, some permits of a
// semaphore, one of many places for readers, or all of them for a writer. The
// zero share is that of a mutex.
type share struct {
	kind   store.Kind
	weight int64 // of the kind's limit; 0 means 1
	kept   bool  // the lease is not passed on within the process
}

// several reports whether others can hold the lock at the same time.
func (s share) several() bool { return !s.kind.IsMutex() }

// passable reports whether the lease may be passed on within the process. If several
// can hold the lock, waiters need not wait for a lease to end.
func (s share) passable() bool { return !s.kept && !s.several() }

// check returns s with the weight that the options ask for, or why a store of those
// capabilities cannot grant that of the lock called name.
func (s share) check(name string, weight int, caps store.Caps) (share, error) {
	switch {
	case s.kind.Limit < 0:
		return s, invalid("lock %q: a semaphore needs at least one permit", name)
	case weight < 0:
		return s, invalid("Weight is %d: it cannot be negative", weight)
	case weight > 0 && (s.kind.Limit == 0 || s.kind.Shared):
		return s, invalid("lock %q has Weight %d: only the leases of a semaphore have a weight, and this is a %v", name, weight, s.kind)
	case weight > 0:
		s.weight = int64(weight)
	}
	err := store.Lease{Name: name, Kind: s.kind, Weight: s.weight}.CheckKind(caps)
	if !s.several() {
		s.kind, s.weight = store.Kind{}, 0
	}
	return s, err
}

// reenters returns nil if a holder with the lease r has what s and require ask for.
func (s share) reenters(r store.Lease, require store.Class) error {
	has, wants := max(r.Weight, 1), max(s.weight, 1)
	switch {
	case r.Kind.Normal() != s.kind.Normal():
		return &store.KindError{Name: r.Name, Asked: s.kind, InUse: r.Kind, Holder: store.DecodeHolder(r.Owner, r.Meta)}
	case wants > has && s.kind.Shared:
		return invalid("lock %q: the context carries a reader's lease, which cannot become a writer's: two readers that both wanted that would wait for each other for ever. Release it, acquire the lock as the writer, and read again", r.Name)
	case wants > has:
		return invalid("lock %q: the context carries a lease of weight %d, which cannot grow to %d: two holders that both wanted that would wait for each other for ever", r.Name, has, wants)
	case require > r.Require:
		return fmt.Errorf("%w: lock %q requires %v, and the lease in the context was acquired with %v: require %[3]v where it is acquired", ErrUnsupported, r.Name, require, r.Require)
	}
	return nil
}
