package zkstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// A place is the only one if its number follows that of the last one and too few transactions
// were made in between to count that far again.
func TestLastPlacePrecedes(t *testing.T) {
	p := lastPlace{seq: 100, gone: 7<<32 | 1000}
	for _, c := range []struct {
		what  string
		seq   int32
		czxid int64
		want  bool
	}{
		{"the next transaction", 101, p.gone + 1, true},
		{"as many transactions as places", 101, p.gone + 100, true},
		{"more transactions than places", 101, p.gone + 101, false},
		{"a place was made in between", 102, p.gone + 2, false},
		{"the same number", 100, p.gone + 1, false},
		{"numbers begin again", 0, p.gone + 1, false},
		{"an earlier transaction", 101, p.gone - 1, false},
		{"the same transaction", 101, p.gone, false},
		{"another leader", 101, p.gone + 1<<32, false},
	} {
		if got := p.precedes(c.seq, c.czxid); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	last := lastPlace{seq: 1<<31 - 1, gone: 1}
	if last.precedes(-1<<31, 2) {
		t.Error("the smallest number follows the largest, want a list")
	}
	if (lastPlace{seq: 0, gone: 1}).precedes(1, 2) {
		t.Error("a transaction after the first place is no proof, want a list")
	}
	newEpoch := lastPlace{seq: 100, gone: 8<<32 - 1}
	if newEpoch.precedes(101, newEpoch.gone+2) {
		t.Error("a transaction of the next leader is no proof, want a list")
	}
}

// The last place of a lock is of use while few transactions are made, and once.
func TestFreeLocks(t *testing.T) {
	var f freeLocks
	p := lastPlace{seq: 200, gone: 1000}
	for _, c := range []struct {
		what string
		zxid int64
		want bool
	}{{"few transactions", 1136, true}, {"many transactions", 1137, false}} {
		f.add("a", p)
		if got := f.take("a", c.zxid); (got != nil) != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
		if f.take("a", 1000) != nil {
			t.Errorf("%s: taken twice", c.what)
		}
	}
	for i := range 2*mostFree + 1 {
		f.add(fmt.Sprint(i), p)
	}
	if len(f.last) > mostFree {
		t.Errorf("%d locks are remembered, want at most %d", len(f.last), mostFree)
	}
}

// releaseOften has s acquire and release a lock until the number of its place is at least seq, and
// returns that place.
func releaseOften(t *testing.T, s *engine, name string, ttl time.Duration, seq int32) lastPlace {
	t.Helper()
	for {
		l := request(name, ttl)
		mustAcquire(t, s, l)
		mustRelease(t, s, l)
		p, ok := s.free.last[name]
		if !ok {
			t.Fatalf("%q is not remembered after a release", name)
		}
		if p.seq >= seq {
			return p
		}
	}
}

// createAfter makes a place whose store expects it to follow last directly.
func createAfter(t *testing.T, s *engine, name string, last lastPlace) *place {
	t.Helper()
	tr, err := s.tree(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	p := tr.newPlace(request(name, 10*time.Second))
	p.after = &last
	if err := p.create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return p
}

// A lock that this store has just released is taken without a list, and its node then has one
// place. It is not taken so if somebody else was there meanwhile, also if the numbers have begun
// again.
func TestLockThatIsFree(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	native := connect(t)
	const seq = 100
	remove := func(p *place) {
		t.Helper()
		if p.removeNow(t.Context()) != nil {
			t.Errorf("%s cannot be removed", p.path())
		}
	}
	last := releaseOften(t, s, "free", 10*time.Second, seq)
	p := createAfter(t, s, "free", last)
	// Other tests use the server, and may have made many transactions in between.
	if few := last.precedes(p.seq, p.czxid); p.seq != last.seq+1 || (p.early != nil) != few || few && (len(p.early.queue) != 1 || p.early.queue[0] != p.numbered) {
		t.Errorf("the queue is %+v, want the place with the number %d", p.early, last.seq+1)
	}
	remove(p)

	for what, meanwhile := range map[string]func(dir string, last lastPlace){
		"another place is there": func(dir string, _ lastPlace) { createPlaces(t, native, dir, 1) },
		"a place with an earlier number has moved there": func(dir string, last lastPlace) {
			path := fmt.Sprintf("%s/%s%010d", dir, placeName(newMark("other"), rule.Mutex, 1), last.seq)
			if _, err := native.Create(path, nil, gozk.FlagEphemeral, gozk.WorldACL(gozk.PermAll)); err != nil {
				t.Fatal(err)
			}
		},
		"another place is there, and the numbers began again": func(dir string, last lastPlace) {
			if err := native.Delete(dir, -1); err != nil {
				t.Fatal(err)
			}
			if _, err := native.Create(dir, nil, 0, gozk.WorldACL(gozk.PermAll)); err != nil {
				t.Fatal(err)
			}
			createPlaces(t, native, dir, int(last.seq)+1)
		},
	} {
		name := "free, but " + what
		last := releaseOften(t, s, name, 10*time.Second, seq)
		meanwhile(DefaultBase+"/"+name, last)
		p := createAfter(t, s, name, last)
		if p.early != nil {
			t.Errorf("%s: the queue is %+v, want to read it", what, p.early.queue)
		}
		a := &attempt{s, store.AcquireRequest{Lease: request(name, 10*time.Second)}, s.clock.Now()}
		if _, err := a.take(t.Context(), p); !errors.Is(err, store.ErrBusy) {
			t.Errorf("%s: take the lock: %v, want %v", what, err, store.ErrBusy)
		}
	}
}

// If the lock's node has changed since the lock was released, leases may have been broken: the
// queue is listed, and what was noted is read. If the node was removed, it is made again.
func TestFreeLockHasChanged(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	native := connect(t)
	for what, change := range map[string]func(dir string) error{
		"changed": func(dir string) error {
			_, err := native.Set(dir, notesMark, -1)
			return err
		},
		"gone": func(dir string) error { return native.Delete(dir, -1) },
	} {
		name := "free and " + what
		last := releaseOften(t, s, name, 10*time.Second, 100)
		if err := change(DefaultBase + "/" + name); err != nil {
			t.Fatal(err)
		}
		p := createAfter(t, s, name, last)
		if p.early == nil || len(p.early.queue) != 1 || p.early.noted != (what == "changed") {
			t.Errorf("%s: the queue is %+v, want a list of one place, with notes only if the node has changed", what, p.early)
		}
		l := request(name, 10*time.Second)
		l.Owner = p.record.Owner
		a := &attempt{s, store.AcquireRequest{Lease: l}, s.clock.Now()}
		if _, err := a.take(t.Context(), p); err != nil {
			t.Errorf("%s: take the lock: %v", what, err)
		}
		mustRelease(t, s, l)
	}
}

// createPlaces makes n places of another kind of client, one after the other, of which the first
// stays.
func createPlaces(t *testing.T, c *gozk.Conn, dir string, n int) {
	t.Helper()
	for i := range n {
		path, err := c.CreateProtectedEphemeralSequential(dir+"/lock-", nil, gozk.WorldACL(gozk.PermAll))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			t.Cleanup(func() { _ = c.Delete(path, -1) })
		} else if err := c.Delete(path, -1); err != nil {
			t.Fatal(err)
		}
	}
}
