package redisstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// A plainClient is a lock client in another language, by the commands that it sends. Its
// scripts are rewritten, and call what the originals call. KEY stands for the lock's key and VALUE for
// what the client writes there.
type plainClient struct {
	name    string
	key     string // of the lock "stock"
	value   string
	acquire []string
	taken   string // what the server replies if the client does not get the lock
	release []string
	blind   bool // its release ends the lock of any holder
	keeps   bool // its release leaves the key there for a while
}

// Most clients send these commands. The release deletes the key if it has their value.
var (
	setNX     = []string{"SET", "KEY", "VALUE", "NX", "PX", "30000"}
	deleteOwn = []string{"EVAL", `return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0`, "1", "KEY", "VALUE"}
)

var plainClients = []plainClient{
	{name: "redis-py", key: "stock", value: "0b16b1f05a254b5ca22b3f5b0b1c8f6e", acquire: setNX, taken: "(nil)", release: deleteOwn},
	{name: "redlock-py", key: "stock", value: "kJ8hQ2mZx0aPq7TnL3vWcR", acquire: setNX, taken: "(nil)", release: deleteOwn},
	{name: "pottery", key: "redlock:stock", value: "0b16b1f0-5a25-4b5c-a22b-3f5b0b1c8f6e", acquire: setNX, taken: "(nil)", release: deleteOwn},
	{
		name: "node-redlock", key: "stock", value: "2c1743a391305fbf367df8e4f069f9f9", release: deleteOwn,
		acquire: []string{"EVAL", `if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
			redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
			return 1`, "1", "KEY", "VALUE", "30000"}, taken: "0",
	},
	{
		name: "ShedLock", key: "job-lock:default:stock", value: "ADDED:2026-11-22T16:43:23.822Z@host",
		acquire: setNX, taken: "(nil)", release: []string{"DEL", "KEY"}, blind: true,
	},
	{
		name: "ShedLock, lockAtLeastFor", key: "job-lock:default:stock", value: "ADDED:2026-11-22T16:43:23.822Z@host",
		acquire: setNX, taken: "(nil)", release: []string{"SET", "KEY", "VALUE", "PX", "30000", "XX"}, blind: true, keeps: true,
	},
	{
		name: "Spring Integration", key: "registry:stock", value: "0b16b1f0-5a25-4b5c-a22b-3f5b0b1c8f6e",
		acquire: []string{"EVAL", `local has = redis.call('GET', KEYS[1])
			if has and has ~= ARGV[1] then return false end
			if has then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
			redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
			return 1`, "1", "KEY", "VALUE", "30000"}, taken: "(nil)",
		release: []string{"EVAL", `return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('UNLINK', KEYS[1]) or 0`, "1", "KEY", "VALUE"},
	},
	{
		name: "Redisson", key: "stock", value: redissonField,
		acquire: []string{"EVAL", `if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
				return redis.call('PTTL', KEYS[1])
			end
			redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
			redis.call('PEXPIRE', KEYS[1], ARGV[2])
			return false`, "1", "KEY", "VALUE", "30000"}, taken: "WRONGTYPE",
		release: []string{"EVAL", `return redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 and redis.call('DEL', KEYS[1])`, "1", "KEY", "VALUE"},
	},
	{
		name: "Redisson, forceUnlock", key: "stock", value: redissonField,
		acquire: []string{"HSET", "KEY", "VALUE", "1"}, taken: "WRONGTYPE",
		release: []string{"DEL", "KEY"}, blind: true,
	},
}

// redissonField is a holder as Redisson writes it: a client and its thread.
const redissonField = "0b16b1f0-5a25-4b5c-a22b-3f5b0b1c8f6e:31"

// sends makes the server run one of the client's commands, and returns its reply.
func (c plainClient) sends(t *testing.T, server *redistest.Server, command []string) string {
	t.Helper()
	words := slices.Clone(command)
	for i, w := range words {
		switch w {
		case "KEY":
			words[i] = c.key
		case "VALUE":
			words[i] = c.value
		}
	}
	said, err := server.Do(t.Context(), words...)
	if err != nil {
		return err.Error()
	}
	return localredis.Text(said)
}

// TestPlainClientsHoldLocks checks that the store respects a lock of each of these clients,
// and that a waiter gets it when the client releases it.
func TestPlainClientsHoldLocks(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, c := range plainClients {
		t.Run(c.name, func(t *testing.T) {
			server := redistest.Start(t)
			s := open(t, []string{server.Addr()}, nil)
			c.sends(t, server, c.acquire)
			server.Text(t, "PEXPIRE", c.key, "30000") // one of the clients does that in a second command
			if st := inspect(t, s, c.key); !st.Held || !st.Holder.Foreign || st.Holder.Owner != c.value || st.ExpiresIn <= 0 || st.Token != 0 {
				t.Errorf("inspect: %+v, want the foreign holder %s without a token", st, c.value)
			}
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request(c.key)}); !errors.Is(err, store.ErrBusy) {
				t.Errorf("acquire: %v, want %v", err, store.ErrBusy)
			}
			if c.keeps {
				return // its release does not free the lock
			}
			next := patientWaiter(c.key)
			done := wait(t, t.Context(), s, []*redistest.Server{server}, next)
			c.sends(t, server, c.release)
			mustRelease(t, s, next, grantedSoon(t, done))
		})
	}
}

// TestPlainClientsRespectLocks checks that none of these clients gets a lock that the store
// holds. The release of some of them ends the lock: then the holder learns so when it
// renews, and the next grant has a larger token.
func TestPlainClientsRespectLocks(t *testing.T) {
	for _, c := range plainClients {
		t.Run(c.name, func(t *testing.T) {
			server := redistest.Start(t)
			s := open(t, []string{server.Addr()}, nil)
			r := request(c.key)
			g := acquire(t, s, r)
			if said := c.sends(t, server, c.acquire); !strings.HasPrefix(said, c.taken) {
				t.Errorf("its acquire of a held lock returns %q, want %q", said, c.taken)
			}
			c.sends(t, server, c.release)
			err := s.Renew(t.Context(), []store.Lease{r})[0]
			switch {
			case !c.blind && err != nil:
				t.Errorf("renewal after its release: %v", err)
			case c.blind && !errors.Is(err, store.ErrNotHeld):
				t.Errorf("renewal after it deleted the key: %v, want %v", err, store.ErrNotHeld)
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil && !c.blind {
				t.Errorf("release by the store: %v", err)
			}
			if c.blind {
				server.Text(t, "DEL", c.key) // one of the clients has written it
			}
			again := request(c.key)
			if next := acquire(t, s, again); next.Token <= g.Token {
				t.Errorf("token %v after %v, want a larger one", next.Token, g.Token)
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: again}); err != nil {
				t.Errorf("second release by the store: %v", err)
			}
			if said := c.sends(t, server, c.acquire); strings.HasPrefix(said, "WRONGTYPE") || server.Text(t, "EXISTS", c.key) != "1" {
				t.Errorf("its acquire of a free lock returns %q, want the lock", said)
			}
		})
	}
}
