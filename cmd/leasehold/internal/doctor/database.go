package doctor

import "github.com/leasehold-dev/leasehold/store/sqlstore"

// Database returns the findings about locks in a database.
func Database(e sqlstore.Examination) []Finding {
	const node = "PostgreSQL"
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
	if e.Pooled {
		r.add(Warning, DatabasePooled, node, "A pooler gives each transaction to any session, so the server cannot wake waiters: they poll.")
	}
	if e.Version > sqlstore.SchemaVersion && e.Oldest <= sqlstore.SchemaVersion {
		r.add(Info, DatabaseNewer, node, "The lock tables have version %d, and this program knows version %d. It can use them.", e.Version, sqlstore.SchemaVersion)
	}
	return r.sorted()
}
