package gcsstore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Examination is what Examine found.
type Examination struct {
	// Node names the bucket, and the server if it is another one.
	Node string
	// Class is what a lock can require.
	Class store.Class
	// Took is how long a lock and its release took.
	Took time.Duration
	// Unusable is why no lock could be acquired there, or nil.
	Unusable error
}

// Examine tries generations as Open does, and acquires and releases a lock with a name that
// nobody uses. It changes no lock that others use. It blocks for a few times Options.Timeout at
// most. The error is about the URL and the options; what is wrong with the server is in the result.
func Examine(ctx context.Context, url string, o *Options) (Examination, error) {
	e, err := engine.Examine(ctx, url, o, nil)
	return Examination(e), err
}
