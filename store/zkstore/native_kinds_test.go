package zkstore

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
)

// curator takes part in Curator's InterProcessReadWriteLock, step by step as that does: a
// reader waits for the first writer before it, and a writer for the place before its own.
type curator struct {
	conn *gozk.Conn
	dir  string
	path string // of its place
}

// lock waits for the lock.
func (c *curator) lock(word string) error {
	const id = "01234567-89ab-cdef-0123-456789abcdef"
	var err error
	c.path, err = c.conn.Create(c.dir+"/_c_"+id+"-"+word, []byte("192.0.2.1"), gozk.FlagEphemeralSequential, gozk.WorldACL(gozk.PermAll))
	if err != nil {
		return err
	}
	for {
		names, _, err := c.conn.Children(c.dir)
		if err != nil {
			return err
		}
		key := func(name string) string {
			for _, w := range []string{"__READ__", "__WRIT__"} {
				if i := strings.LastIndex(name, w); i >= 0 {
					name = name[i+len(w):]
				}
			}
			return name
		}
		slices.SortFunc(names, func(a, b string) int { return strings.Compare(key(a), key(b)) })
		me := slices.Index(names, strings.TrimPrefix(c.path, c.dir+"/"))
		watch := me - 1
		if word == "__READ__" {
			watch = slices.IndexFunc(names[:me], func(n string) bool { return strings.Contains(n, "__WRIT__") })
		}
		if watch < 0 {
			return nil
		}
		_, _, gone, err := c.conn.GetW(c.dir + "/" + names[watch])
		if errors.Is(err, gozk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		<-gone
	}
}

func (c *curator) unlock() error { return c.conn.Delete(c.path, -1) }

// Readers and writers of Curator and ours take turns, and no writer is beside another or a
// reader.
func TestTurnsWithCurator(t *testing.T) {
	t.Parallel() // it mostly waits
	const name, each, turns = "read with others", 4, 8
	h := &history{kind: store.ReadWrite} // of ours; those of Curator have no tokens
	var mu sync.Mutex
	inside := map[bool]int{} // by whether it writes
	enter := func(writes bool, n int) {
		mu.Lock()
		defer mu.Unlock()
		inside[writes] += n
		if inside[true] > 1 || inside[true] == 1 && inside[false] > 0 {
			t.Errorf("%d writers and %d readers at once", inside[true], inside[false])
		}
	}
	mustOpen(t, &Options{servers: []string{shared.Addr}}).makeDirFor(t, name)
	var wg sync.WaitGroup
	for i := range each {
		s := mustOpen(t, &Options{servers: []string{shared.Addr}})
		conn := connect(t)
		wg.Go(func() {
			for range turns {
				l := request(name, 20*time.Second)
				l.Kind, l.Weight = store.ReadWrite, []int64{1, store.ReadWriteLimit}[i%2]
				g, err := s.Wait(t.Context(), store.WaitRequest{Lease: l}, nil)
				if err != nil {
					t.Errorf("wait: %v", err)
					return
				}
				enter(i%2 == 1, 1)
				from := clock.System().Now()
				time.Sleep(rand.N(2 * time.Millisecond))
				h.add(t, stay{From: from, To: clock.System().Now(), Weight: l.Weight, Slot: g.Slot, Token: g.Token})
				enter(i%2 == 1, -1)
				if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
					t.Errorf("release: %v", err)
				}
			}
		})
		wg.Go(func() {
			c := &curator{conn: conn, dir: DefaultBase + "/" + name}
			for range turns {
				if err := c.lock([]string{"__READ__", "__WRIT__"}[i%2]); err != nil {
					t.Errorf("Curator: lock: %v", err)
					return
				}
				enter(i%2 == 1, 1)
				time.Sleep(rand.N(2 * time.Millisecond))
				enter(i%2 == 1, -1)
				if err := c.unlock(); err != nil {
					t.Errorf("Curator: unlock: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if n := h.count(); n != each*turns {
		t.Errorf("this store had %d turns, want %d", n, each*turns)
	}
}

// makeDirFor makes the node that has the places of a lock.
func (s *engine) makeDirFor(t *testing.T, name string) {
	t.Helper()
	l := request(name, 10*time.Second)
	mustAcquire(t, s, l)
	mustRelease(t, s, l)
}

// A place of another client has the kind that its name shows. Other clients wait for a
// semaphore as if it were a mutex.
func TestKindsOfOtherClients(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	refused := func(l store.Lease, inUse store.Kind) {
		t.Helper()
		var kind *store.KindError
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); !errors.As(err, &kind) || kind.InUse != inUse.Normal() || kind.Holder.Owner == "" {
			t.Errorf("acquire as a %v: %v, want a *KindError that names the holder and %v", l.Kind, err, inUse)
		}
	}
	const name = "kinds of others"
	s.makeDirFor(t, name)
	reader := &curator{conn: connect(t), dir: DefaultBase + "/" + name}
	if err := reader.lock("__READ__"); err != nil {
		t.Fatal(err)
	}
	refused(request(name, 10*time.Second), store.ReadWrite)
	l := request(name, 10*time.Second)
	l.Kind = store.ReadWrite
	g := mustAcquire(t, s, l)
	st, err := s.Inspect(t.Context(), name)
	if err != nil || len(st.Holders) != 2 || !st.Holder.Foreign || st.Holders[1].Token != g.Token {
		t.Errorf("inspect: %+v, %v, want a foreign reader and one with token %v", st, err, g.Token)
	}
	if err := reader.unlock(); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, s, l)

	l = request(name, 20*time.Second)
	l.Kind, l.Weight = store.Semaphore(3), 2
	mustAcquire(t, s, l)
	lock := gozk.NewLock(connect(t), DefaultBase+"/"+name, gozk.WorldACL(gozk.PermAll))
	locked := make(chan error, 1)
	go func() { locked <- lock.Lock() }()
	eventually.True(t, "go-zookeeper waits", func() bool {
		st, err := s.Inspect(t.Context(), name)
		return err == nil && len(st.Queue) == 1
	})
	select {
	case err := <-locked:
		t.Fatalf("go-zookeeper has the lock beside the holder of a semaphore: %v", err)
	default:
	}
	refused(request(name, 10*time.Second), l.Kind)
	mustRelease(t, s, l)
	if err := <-locked; err != nil {
		t.Fatal(err)
	}
	l.Owner = store.NewOwner()
	refused(l, store.Kind{})
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}
