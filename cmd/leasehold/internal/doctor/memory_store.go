package doctor

import "github.com/leasehold-dev/leasehold/store"

// Memory returns the finding about a store in memory.
func Memory() []Finding {
	r := &report{}
	r.add(Info, MemoryOnly, "", "The locks are in the memory of one process and hold between its own goroutines only.")
	return r.sorted()
}

// Remote returns the finding about a store behind a server of ours, which answers.
func Remote(c store.Caps) []Finding {
	r := &report{}
	r.add(Info, BehindServer, "", "The server answers. Its store is of kind %s and gives %v locks; what else there is to say of it cannot be seen from here.", c.Engine, c.Class)
	return r.sorted()
}
