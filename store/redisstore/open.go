package redisstore

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
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
func openURL(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
	s, err := newStore(url, &Options{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	if err := s.waitForQuorum(ctx); err != nil && !(o.Partial && someAnswered(err)) {
		s.Close()
		return nil, err
	}
	return store.New(s), nil
}

// someAnswered reports whether err, of waitForQuorum, says that some servers can be asked.
func someAnswered(err error) bool {
	e, ok := err.(*store.QuorumError)
	return ok && e.Count(store.Granted) > 0 && !errors.Is(err, membership.ErrSameServer)
}

// openClusterURL implements store.OpenFunc.
func openClusterURL(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
	return OpenCluster(ctx, url, &Options{Logger: o.Logger})
}
