package s3store

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Examination is what Examine found.
type Examination struct {
	// Node names the server and the bucket.
	Node string
	// Class is what a lock can require.
	Class store.Class
	// Racy says that the server has accepted several writes at once of which each
	// expected the same version: two clients can get one lock there.
	Racy bool
	// Took is how long a lock and its release took.
	Took time.Duration
	// Unusable is why no lock could be acquired there, or nil.
	Unusable error
}

// Examine tries the conditions as Open does, has writes compete, and acquires and releases a
// lock. It changes no lock that others use, and makes about 80 requests. It blocks for a few
// times Options.Timeout at most. The error is about the URL and the options; what is wrong with the
// server is in the result.
func Examine(ctx context.Context, url string, o *Options) (Examination, error) {
	var racy bool
	e, err := engine.Examine(ctx, url, o, func(ctx context.Context, d *driver) (err error) {
		racy, err = d.race(ctx)
		return err
	})
	return Examination{Node: e.Node, Class: e.Class, Racy: racy, Took: e.Took, Unusable: e.Unusable}, err
}
