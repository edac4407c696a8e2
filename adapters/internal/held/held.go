// Package held remembers leases for interfaces whose Unlock does not say which lease it
// means.
package held

import (
	"slices"
	"sync"

	"github.com/leasehold-dev/leasehold"
)

// Leases are the leases that were locked and not unlocked yet, by what they are unlocked
// with. The zero value has none. Its methods are safe for concurrent use and do not
// block.
//
// There is one lease of a key, unless it was lost: somebody else can lock the same key
// before the first one unlocks it. An unlock then takes the oldest. If it took the latest,
// the first one would release a lock that another relies on.
type Leases[K comparable] struct {
	mu    sync.Mutex
	byKey map[K][]*leasehold.Lease
}

// Add adds a lease of k.
func (l *Leases[K]) Add(k K, lease *leasehold.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = map[K][]*leasehold.Lease{}
	}
	l.byKey[k] = append(l.byKey[k], lease)
}

// Oldest returns the oldest lease of k, or nil if there is none.
func (l *Leases[K]) Oldest(k K) *leasehold.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oldestLocked(k)
}

// Take removes the oldest lease of k and returns it, or nil if there is none.
func (l *Leases[K]) Take(k K) *leasehold.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	lease := l.oldestLocked(k)
	if lease == nil {
		return nil
	}
	if l.byKey[k] = slices.Delete(l.byKey[k], 0, 1); len(l.byKey[k]) == 0 {
		delete(l.byKey, k)
	}
	return lease
}

func (l *Leases[K]) oldestLocked(k K) *leasehold.Lease {
	if len(l.byKey[k]) == 0 {
		return nil
	}
	return l.byKey[k][0]
}
