package redisstore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/operator"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

func init() {
	operator.Open = func(url string, c config.Config, declares bool) (operator.Servers, error) {
		o := Options(c)
		s, err := newStore(url, &o)
		if err != nil {
			return nil, err
		}
		s.Declares = declares
		return servers{s}, nil
	}
}

// servers implements operator.Servers.
type servers struct{ s *engine }

func (v servers) Addrs() []string {
	addrs := make([]string, len(v.s.Nodes))
	for i, n := range v.s.Nodes {
		addrs[i] = n.Addr()
	}
	return addrs
}

func (v servers) Membership() membership.List { return v.s.Membership }

func (v servers) Connect(ctx context.Context) error {
	if err := v.s.waitForQuorum(ctx); err != nil || v.s.Declares {
		return err
	}
	return v.s.Take(ctx)
}

func (v servers) Join(ctx context.Context) error { return v.s.Take(ctx) }

func (v servers) Ask(ctx context.Context, server int, c *script.Command) script.Reply {
	return v.s.Nodes[server].Ask(ctx, c)
}

func (v servers) Identity(server int) membership.Identity {
	return v.s.Nodes[server].Identity()
}

func (v servers) Held(ctx context.Context) ([]store.State, error) { return v.s.held(ctx, "") }

func (v servers) HeldAt(ctx context.Context, server int) (string, store.Holder, error) {
	return v.s.heldAt(ctx, v.s.Nodes[server])
}

func (v servers) Quarantine() time.Duration { return v.s.Quarantine() }

func (v servers) Close() error { return v.s.Close() }
