package doctor

import (
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/s3store"
)

// S3 returns the findings about locks with a TTL in a bucket.
func S3(e s3store.Examination, ttl time.Duration) []Finding {
	r := &report{}
	if e.Unusable != nil {
		r.add(Error, S3Unusable, e.Node, "No lock can be acquired there: %v.", store.Excerpt(e.Unusable.Error()))
		return r.sorted()
	}
	if e.Racy {
		r.add(Error, S3Racy, e.Node, "The server accepted several writes at once of which each expected the same version, so two clients can get one lock.")
	}
	if e.Class == store.Efficiency {
		r.add(Warning, S3NotDurable, e.Node, "Locks there are for efficiency only: nothing says that the server still knows them after a crash.")
	}
	if e.Took > ttl/10 {
		r.add(Warning, S3Slow, e.Node, "A lock and its release took %v. With a TTL of %v, a few such answers in a row end a lease.", store.Round(e.Took), ttl)
	}
	return r.sorted()
}
