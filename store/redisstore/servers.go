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
		s.declares = declares
		return servers{s}, nil
	}
}

// servers implements operator.Servers.
type servers struct{ s *engine }

func (v servers) Addrs() []string {
	addrs := make([]string, len(v.s.nodes))
	for i, n := range v.s.nodes {
		addrs[i] = n.Addr()
	}
	return addrs
}

func (v servers) Membership() membership.List { return v.s.membership }

func (v servers) Connect(ctx context.Context) error {
	if err := v.s.waitForQuorum(ctx); err != nil || v.s.declares {
		return err
	}
	return v.s.take(ctx)
}

func (v servers) Join(ctx context.Context) error { return v.s.take(ctx) }

func (v servers) Ask(ctx context.Context, server int, c *script.Command) script.Reply {
	return v.s.nodes[server].askOne(ctx, c)
}

func (v servers) Identity(server int) membership.Identity {
	n := v.s.nodes[server]
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return n.server
}

func (v servers) Held(ctx context.Context) ([]store.State, error) { return v.s.held(ctx, "") }

func (v servers) HeldAt(ctx context.Context, server int) (string, store.Holder, error) {
	return v.s.heldAt(ctx, v.s.nodes[server])
}

func (v servers) Quarantine() time.Duration { return v.s.quarantine() }

func (v servers) Close() error { return v.s.Close() }
