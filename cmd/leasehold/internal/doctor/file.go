package doctor

import "github.com/leasehold-dev/leasehold/store/filestore"

// leastFree is the space that should be left for a lock file and its log, in
// bytes.
const leastFree = 16 << 20

// File returns the findings about a lock file.
func File(e filestore.FileExamination) []Finding {
	r := &report{}
	if e.Network != "" {
		r.add(Error, FileOnNetwork, e.Path, "The file is on a network file system (%s), whose locks do not reach from machine to machine: two machines can hold one lock, and the file can be damaged.", e.Network)
	}
	if e.Exposed != nil && e.Shared {
		r.add(Info, FileShared, e.Path, "Other users can write or replace the file, which shared=true allows: they can take and end every lock.")
	} else if e.Exposed != nil {
		r.add(Error, FileExposed, e.Path, "The file is refused: %v.", e.Exposed)
	}
	if e.Unusable != nil {
		r.add(Error, FileUnusable, e.Path, "No lock can be acquired there: %v.", e.Unusable)
	}
	if e.FreeKnown && e.Free < leastFree {
		r.add(Warning, FileDiskLow, e.Path, "Only %s are left on its disk.", size(e.Free))
	}
	if e.Journal != "" && e.Journal != "wal" && e.Unusable == nil {
		r.add(Info, FileNotLogged, e.Path, "Another program has used the file with a journal mode of its own (%s).", e.Journal)
	}
	if e.Missing && e.Unusable == nil {
		r.add(Info, FileMissing, e.Path, "There is no such file yet: the first use makes it.")
	}
	return r.sorted()
}
