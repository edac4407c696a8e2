package doctor

import (
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/filestore"
)

// leastFree is the space that should be left for the log of a lock folder, in bytes.
const leastFree = 16 << 20

// File returns the findings about a lock folder.
func File(e filestore.Examination) []Finding {
	r := &report{}
	if e.Network != "" {
		r.add(Error, "file-on-network", e.Path, "The folder is on a network file system (%s), which does not put the steps of several machines in one order: two machines can hold one lock.", e.Network)
	}
	if e.Exposed != nil && e.Shared {
		r.add(Info, "file-shared", e.Path, "Other users can write or replace the folder, which shared=true allows: they can take and end every lock.")
	} else if e.Exposed != nil {
		r.add(Error, "file-exposed", e.Path, "The folder is refused: %v.", e.Exposed)
	}
	if e.Unusable != nil {
		r.add(Error, "file-unusable", e.Path, "No lock can be acquired there: %v.", e.Unusable)
	}
	if e.FreeKnown && e.Free < leastFree {
		r.add(Warning, "file-disk-low", e.Path, "Only %s are left on its disk.", size(e.Free))
	}
	if e.Missing && e.Unusable == nil {
		r.add(Info, "file-missing", e.Path, "There is no such folder yet: the first use makes it.")
	}
	return r.sorted()
}

// Memory returns the finding about a store in memory.
func Memory() []Finding {
	r := &report{}
	r.add(Info, "memory-of-one-process", "", "The locks are in the memory of one process and hold between its own goroutines only.")
	return r.sorted()
}

// Remote returns the finding about a store behind a server of ours, which answers.
func Remote(c store.Caps) []Finding {
	r := &report{}
	r.add(Info, "behind-server", "", "The server answers. Its store is of kind %s and gives %v locks; what else there is to say of it cannot be seen from here.", c.Engine, c.Class)
	return r.sorted()
}
