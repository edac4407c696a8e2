package doctor

import "github.com/leasehold-dev/leasehold/store/filestore"

// leastFree is the space that should be left for the log of a lock folder, in bytes.
const leastFree = 16 << 20

// File returns the findings about a lock folder.
func File(e filestore.Examination) []Finding {
	r := &report{}
	if e.Network != "" {
		r.add(Error, FileOnNetwork, e.Path, "The folder is on a network file system (%s), which does not put the steps of several machines in one order: two machines can hold one lock.", e.Network)
	}
	if e.Exposed != nil && e.Shared {
		r.add(Info, FileShared, e.Path, "Other users can write or replace the folder, which shared=true allows: they can take and end every lock.")
	} else if e.Exposed != nil {
		r.add(Error, FileExposed, e.Path, "The folder is refused: %v.", e.Exposed)
	}
	if e.Unusable != nil {
		r.add(Error, FileUnusable, e.Path, "No lock can be acquired there: %v.", e.Unusable)
	}
	if e.FreeKnown && e.Free < leastFree {
		r.add(Warning, FileDiskLow, e.Path, "Only %s are left on its disk.", size(e.Free))
	}
	if e.Missing && e.Unusable == nil {
		r.add(Info, FileMissing, e.Path, "There is no such folder yet: the first use makes it.")
	}
	return r.sorted()
}
