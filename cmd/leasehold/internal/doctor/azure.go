package doctor

import (
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/azblobstore"
)

// Azure returns the findings about locks with a TTL in a container of Azure.
func Azure(e azblobstore.Examination, ttl time.Duration) []Finding {
	r := &report{}
	if e.Unusable != nil {
		r.add(Error, AzureUnusable, e.Node, "No lock can be acquired there: %v.", store.Excerpt(e.Unusable.Error()))
		return r.sorted()
	}
	if e.Class == store.Efficiency {
		r.add(Warning, AzureOther, e.Node, "Locks there are for efficiency only: it is not Azure, and nothing says that it still knows them after a crash.")
	}
	if e.Took > ttl/10 {
		r.add(Warning, AzureSlow, e.Node, "A lock and its release took %v. With a TTL of %v, a few such answers in a row end a lease.", store.Round(e.Took), ttl)
	}
	return r.sorted()
}
