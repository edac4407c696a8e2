package guardtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/leasehold-dev/leasehold/guard/redisguard"
)

// The Eval functions in the documentation of redisguard work with their client
// libraries, for every type of reply.
func TestRedisClients(t *testing.T) {
	t.Parallel()
	ru, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{redisServer.Addr()}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ru.Close()
	gr := goredis.NewClient(&goredis.Options{Addr: redisServer.Addr()})
	defer gr.Close()
	for name, eval := range map[string]redisguard.Eval{
		"rueidis": rueidisEval(ru),
		"go-redis": func(ctx context.Context, script string, keys, args []string) (any, error) {
			var more []any
			for _, a := range args {
				more = append(more, a)
			}
			return goredis.NewScript(script).Run(ctx, gr, keys, more...).Result()
		},
	} {
		t.Run(name, func(t *testing.T) {
			guard, err := redisguard.New(eval, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			key := fmt.Sprint("clients:", tests.Add(1))
			if err := guard.Set(ctx, key, "v", 1_795_275_000_000_002, 0); err != nil {
				t.Fatal(err)
			}
			refused(t, guard.Set(ctx, key, "old", 1_795_275_000_000_001, 0), key, 1_795_275_000_000_001, 1_795_275_000_000_002)
			run := func(script string) (any, error) {
				return guard.Run(ctx, script, key, 1_795_275_000_000_002, []string{key}, []string{"x"})
			}
			for script, want := range map[string]string{
				`return redis.call('GET', KEYS[1]) .. ARGV[1]`: "vx",
				`return 42`:                      "42",
				`return {1, {'two', 3}}`:         "[1 [two 3]]",
				`return redis.call('GET', 'no')`: "<nil>",
				`return`:                         "<nil>",
			} {
				if got, err := run(script); err != nil || fmt.Sprint(got) != want {
					t.Errorf("%s: %v, %v, want %s", script, got, err, want)
				}
			}
			for _, script := range []string{`return redis.error_reply('MINE says no')`, `error('MINE says no')`} {
				if got, err := run(script); err == nil || errors.Is(err, redisguard.ErrInvalid) || !strings.Contains(err.Error(), "MINE says no") {
					t.Errorf("%s: %v, %v, want an error with %q, but not %v", script, got, err, "MINE says no", redisguard.ErrInvalid)
				}
			}
		})
	}
}

func rueidisEval(client rueidis.Client) redisguard.Eval {
	return func(ctx context.Context, script string, keys, args []string) (any, error) {
		return rueidis.NewLuaScript(script).Exec(ctx, client, keys, args).ToAny()
	}
}
