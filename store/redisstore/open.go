package redisstore

import (
	"context"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

func init() {
	for _, t := range topologies {
		store.Register(t.scheme, openURL)
		store.Register(t.secure(), openURL)
	}
	store.Register(clustered.scheme, openClusterURL)
	store.Register(clustered.secure(), openClusterURL)
}

// openURL implements store.OpenFunc.
func openURL(ctx context.Context, url string, o store.OpenOptions) (store.Store, error) {
	s, err := Open(ctx, strings.Fields(url), &Options{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openClusterURL implements store.OpenFunc.
func openClusterURL(ctx context.Context, url string, o store.OpenOptions) (store.Store, error) {
	c, err := OpenCluster(ctx, strings.Fields(url), &Options{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return c, nil
}
