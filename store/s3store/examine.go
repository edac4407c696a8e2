package s3store

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
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
// times Options.Timeout at most. The error is about the options; what is wrong with the
// server is in the result.
func Examine(ctx context.Context, bucket string, o *Options) (Examination, error) {
	c, err := o.checked(bucket)
	if err != nil {
		return Examination{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	d, err := connect(bounded, c)
	if err != nil {
		return Examination{Node: "s3://" + bucket, Unusable: err}, ctx.Err()
	}
	e := Examination{Node: d.node, Class: d.Describe().Class}
	s := recordstore.New(d, &recordstore.Options{Timeout: c.Timeout})
	defer s.Close()
	if e.Unusable = d.probe(bounded); e.Unusable == nil {
		e.Racy, e.Unusable = d.race(bounded)
	}
	if e.Unusable == nil {
		began := time.Now()
		l := store.Lease{Name: "leasehold-doctor", Owner: store.NewOwner(), TTL: c.Timeout}
		if _, e.Unusable = s.Acquire(ctx, store.AcquireRequest{Lease: l}); e.Unusable == nil {
			e.Unusable = s.Release(ctx, store.ReleaseRequest{Lease: l})
		} else if errors.Is(e.Unusable, store.ErrBusy) { // another doctor has it
			e.Unusable = nil
		}
		e.Took = time.Since(began)
	}
	return e, ctx.Err()
}
