package redisstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
)

func init() {
	for _, scheme := range config.Schemes() {
		store.Register(scheme, openURL)
	}
	for _, scheme := range config.ClusterSchemes() {
		store.Register(scheme, openClusterURL)
	}
}

// openURL implements store.OpenFunc.
func openURL(ctx context.Context, url string, o store.OpenOptions) (store.Store, error) {
	s, err := Open(ctx, url, &Options{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openClusterURL implements store.OpenFunc.
func openClusterURL(ctx context.Context, url string, o store.OpenOptions) (store.Store, error) {
	c, err := OpenCluster(ctx, url, &Options{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return c, nil
}
