package locks

import (
	"context"

	"github.com/go-redsync/redsync/v4/redis"
	pool "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

func redsyncRueidis(n int, failFast bool) Kind {
	k := redsyncKind(n, failFast, "rueidis")
	k.Open = func(_ context.Context, addrs []string) (Client, error) {
		var clients []rueidis.Client
		var pools []redis.Pool
		closeAll := func() {
			for _, c := range clients {
				c.Close()
			}
		}
		for _, addr := range addrs {
			c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true})
			if err != nil {
				closeAll()
				return nil, err
			}
			clients = append(clients, c)
			pools = append(pools, pool.NewPool(rueidiscompat.NewAdapter(c)))
		}
		return redsyncClient(pools, failFast, closeAll), nil
	}
	return k
}
