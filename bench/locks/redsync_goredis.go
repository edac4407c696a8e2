package locks

import (
	"context"

	"github.com/go-redsync/redsync/v4/redis"
	pool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"
)

func redsyncGoredis(n int, failFast bool) Kind {
	k := redsyncKind(n, failFast, "go-redis")
	k.Open = func(ctx context.Context, addrs []string) (Client, error) {
		var clients []*goredis.Client
		var pools []redis.Pool
		closeAll := func() {
			for _, c := range clients {
				c.Close()
			}
		}
		for _, addr := range addrs {
			c, err := dialGoredis(ctx, addr)
			if err != nil {
				closeAll()
				return nil, err
			}
			clients = append(clients, c)
			pools = append(pools, pool.NewPool(c))
		}
		return redsyncClient(pools, failFast, closeAll), nil
	}
	return k
}

// quiet drops log lines about servers that are down on purpose.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// dialGoredis connects at once; the driver would only do so with the first command.
func dialGoredis(ctx context.Context, addr string) (*goredis.Client, error) {
	goredis.SetLogger(quiet{})
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	if err := c.Ping(ctx).Err(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
