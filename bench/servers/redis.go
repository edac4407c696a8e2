package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold/bench/resp"
	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// Redis is a group of Redis servers without persistence.
type Redis []*localredis.Server

// StartRedis starts n servers.
func StartRedis(n int) (Redis, error) {
	all := make(Redis, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { all[i], errs[i] = localredis.Launch(localredis.Options{}) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}

// Close ends the servers.
func (r Redis) Close() {
	for _, s := range r {
		if s != nil {
			s.Close()
		}
	}
}

// Addrs are the servers' addresses.
func (r Redis) Addrs() []string {
	addrs := make([]string, len(r))
	for i, s := range r {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Empty removes everything from the servers, scripts included, so that each measurement
// finds the same state. It then declares that no locks are held there, as an operator
// does with new servers. All servers must be up.
func (r Redis) Empty(ctx context.Context) error { return r.EmptyAs(ctx, r.Addrs()) }

// EmptyAs is Empty for clients that reach the servers at other addresses: a list of
// servers is identified by the addresses as clients write them.
func (r Redis) EmptyAs(ctx context.Context, addrs []string) error {
	for _, s := range r {
		for _, command := range [][]string{{"FLUSHALL"}, {"SCRIPT", "FLUSH"}} {
			if _, err := resp.Ask(s.Addr(), command...); err != nil {
				return fmt.Errorf("%s at %s: %w", command, s.Addr(), err)
			}
		}
	}
	if _, err := redisadmin.Bootstrap(ctx, "redis://"+strings.Join(addrs, ","), nil, true); err != nil {
		return fmt.Errorf("declaring the servers new: %w", err)
	}
	return nil
}

// Version returns the version that the first server reports.
func (r Redis) Version() (string, error) {
	info, err := resp.Ask(r[0].Addr(), "INFO", "server")
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", errors.Join(errors.New("no version"), err)
}
