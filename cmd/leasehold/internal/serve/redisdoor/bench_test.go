package redisdoor

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// BenchmarkAcquireRelease compares taking and releasing a lock over the door with the same in
// the store, with 64 clients that each want a lock of their own, or as many commands at once over one connection.
func BenchmarkAcquireRelease(b *testing.B) {
	stores := map[string]func(b *testing.B) *store.Store{
		"memory": func(*testing.B) *store.Store { return memstore.New(nil) },
		"redis": func(b *testing.B) *store.Store {
			s, err := redisstore.Open(b.Context(), "redis://"+redistest.Start(b).Addr(), nil)
			if err != nil {
				b.Fatal(err)
			}
			return s
		},
	}
	for name, newStore := range stores {
		b.Run(name+"/store", func(b *testing.B) {
			st := newStore(b)
			defer st.Close()
			compete(b, func(i int) func() error {
				name := "lock" + strconv.Itoa(i)
				return func() error {
					l := store.Lease{Name: name, Owner: store.NewOwner(), TTL: time.Minute}
					_, err := st.Acquire(context.Background(), store.AcquireRequest{Lease: l})
					if err == nil {
						err = st.Release(context.Background(), store.ReleaseRequest{Lease: l})
					}
					return err
				}
			})
		})
		b.Run(name+"/door", func(b *testing.B) {
			st := newStore(b)
			defer st.Close()
			address, _ := open(b, Options{Store: st})
			compete(b, func(i int) func() error {
				c, name := dial(b, address), "lock"+strconv.Itoa(i)
				set := encode("SET", name, "v", "NX", "PX", "60000")
				del := encode("EVALSHA", "cf0e94b2e9ffc7e04395cf88f7583fc309985910", "1", name, "v")
				return func() error {
					for _, raw := range []string{set, del} {
						c.nc.Write([]byte(raw))
						if got, err := readReply(c.in); err != nil || got != "OK" && got != "(integer) 1" {
							b.Error(got, err)
						}
					}
					return nil
				}
			})
		})
		b.Run(name+"/door, one connection", func(b *testing.B) {
			st := newStore(b)
			defer st.Close()
			address, _ := open(b, Options{Store: st})
			c := dial(b, address)
			var sets, dels strings.Builder
			for i := range clients {
				name := "lock" + strconv.Itoa(i)
				sets.WriteString(encode("SET", name, "v", "NX", "PX", "60000"))
				dels.WriteString(encode("DELIFEQ", name, "v"))
			}
			for n := 0; n < b.N; n += clients {
				for _, raw := range []string{sets.String(), dels.String()} {
					c.send(raw)
					for range clients {
						if got := c.receive(); got != "OK" && got != "(integer) 1" {
							b.Fatal(got)
						}
					}
				}
			}
		})
	}
}

// clients is how many of them compete.
const clients = 64

// compete has the clients do b.N rounds together.
func compete(b *testing.B, client func(i int) func() error) {
	var all [clients]func() error
	for i := range all {
		all[i] = client(i)
		if err := all[i](); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	var ended sync.WaitGroup
	for i, round := range all {
		ended.Go(func() {
			for n := i; n < b.N; n += clients {
				if err := round(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	ended.Wait()
}
