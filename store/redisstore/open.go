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
		store.Register(scheme, func(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
			return open(ctx, url, &Options{Logger: o.Logger}, o.Partial)
		})
	}
}

// open is Open. With partial, it also opens independent servers of which only some answer.
func open(ctx context.Context, url string, o *Options, partial bool) (*store.Store, error) {
	if config.NamesCluster(url) {
		c, err := openClusterEngine(ctx, url, o)
		if err != nil {
			return nil, err
		}
		return store.New(c), nil
	}
	s, err := openEngine(ctx, url, o, partial)
	if err != nil {
		return nil, err
	}
	return store.New(s), nil
}

// openEngine connects to independent servers.
func openEngine(ctx context.Context, url string, o *Options, partial bool) (*engine, error) {
	s, err := newStore(url, o)
	if err != nil {
		return nil, err
	}
	if err := s.waitForQuorum(ctx); err != nil && !(partial && someAnswered(err)) {
		s.Close()
		return nil, err
	}
	return s, nil
}

// someAnswered reports whether err, of waitForQuorum, says that some servers can be asked.
func someAnswered(err error) bool {
	e, ok := err.(*store.QuorumError)
	return ok && e.Count(store.Granted) > 0 && !errors.Is(err, membership.ErrSameServer)
}
