package doctor

import "github.com/leasehold-dev/leasehold/store/sqlstore"

// Database returns the findings about locks in a database.
func Database(e sqlstore.Examination) []Finding {
	node := e.Node
	r := &report{}
	if e.Unusable != nil {
		r.add(Error, DatabaseUnusable, node, "No lock can be acquired there: %v.", e.Unusable)
	}
	if !e.Known {
		return r.sorted()
	}
	if e.Why != "" {
		r.add(Warning, DatabaseNotDurable, node, "Locks there are for efficiency only: %s.", e.Why)
	}
	if e.Polled != "" {
		r.add(Warning, DatabasePooled, node, "The server cannot wake waiters, so they poll: %s.", e.Polled)
	}
	return r.sorted()
}
