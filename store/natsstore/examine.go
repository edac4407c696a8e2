package natsstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Examination is what Examine found.
type Examination struct {
	// Node names the servers of the URL.
	Node string
	// Version is that of the server that is connected.
	Version string
	// Class is what a lock can require.
	Class store.Class
	// Replicas is how many servers keep the stream, and Behind names those that do not answer
	// or are behind.
	Replicas int
	Behind   []string
	// Took is how long a lock and its release took.
	Took time.Duration
	// Unusable is why no lock could be acquired there, or nil.
	Unusable error
}

// Examine opens the stream as Open does, and acquires and releases a lock with a name that nobody
// uses. It changes no other lock. It blocks for a few times Options.Timeout at most. The
// error is about the options; what is wrong with the servers is in the result.
func Examine(ctx context.Context, servers []string, o *Options) (Examination, error) {
	e := Examination{Node: strings.Join(servers, ",")}
	c, err := o.checked()
	if err != nil {
		return e, err
	}
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	d, err := connect(bounded, servers, c)
	if err != nil {
		e.Unusable = err
		return e, ctx.Err()
	}
	e.Version, e.Class, e.Replicas = d.conn.ConnectedServerVersion(), d.Describe().Class, d.replicas
	if info, err := d.stream.Info(bounded); err == nil && info.Cluster != nil {
		for _, p := range info.Cluster.Replicas {
			if p.Offline || !p.Current {
				e.Behind = append(e.Behind, p.Name)
			}
		}
	}
	s := recordstore.New(d, &recordstore.Options{Timeout: c.Timeout})
	defer s.Close()
	began := time.Now()
	l := store.Lease{Name: "leasehold-doctor-" + store.NewOwner(), Owner: store.NewOwner(), TTL: c.Timeout}
	if _, e.Unusable = s.Acquire(ctx, store.AcquireRequest{Lease: l}); e.Unusable == nil {
		e.Unusable = s.Release(ctx, store.ReleaseRequest{Lease: l})
	}
	e.Took = time.Since(began)
	if errors.Is(e.Unusable, ctx.Err()) {
		return e, ctx.Err()
	}
	return e, nil
}
