package doctor

import (
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/gcsstore"
)

// GCS returns the findings about locks with a TTL in a bucket of Cloud Storage.
func GCS(e gcsstore.Examination, ttl time.Duration) []Finding {
	r := &report{}
	if e.Unusable != nil {
		r.add(Error, GCSUnusable, e.Node, "No lock can be acquired there: %v.", store.Excerpt(e.Unusable.Error()))
		return r.sorted()
	}
	if e.Class == store.Efficiency {
		r.add(Warning, GCSOther, e.Node, "Locks there are for efficiency only: it is not Cloud Storage, and nothing says that it still knows them after a crash.")
	}
	if e.Took > ttl/10 {
		r.add(Warning, GCSSlow, e.Node, "A lock and its release took %v. With a TTL of %v, a few such answers in a row end a lease.", store.Round(e.Took), ttl)
	}
	return r.sorted()
}
