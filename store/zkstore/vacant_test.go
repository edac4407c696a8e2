package zkstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/store"
)

// A place is the only one if its number follows that of the last one and too few transactions
// were made in between to count that far again.
func TestVacancyPrecedes(t *testing.T) {
	v := vacancy{number: 100, zxid: 7<<32 | 1000}
	for _, c := range []struct {
		what   string
		number int32
		zxid   int64
		want   bool
	}{
		{"the next transaction", 101, v.zxid + 1, true},
		{"as many transactions as places", 101, v.zxid + 100, true},
		{"more transactions than places", 101, v.zxid + 101, false},
		{"a place was made in between", 102, v.zxid + 2, false},
		{"the same number", 100, v.zxid + 1, false},
		{"numbers begin again", 0, v.zxid + 1, false},
		{"an earlier transaction", 101, v.zxid - 1, false},
		{"the same transaction", 101, v.zxid, false},
		{"another leader", 101, v.zxid + 1<<32, false},
	} {
		if got := v.precedes(c.number, c.zxid); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	last := vacancy{number: 1<<31 - 1, zxid: 1}
	if last.precedes(-1<<31, 2) {
		t.Error("the smallest number follows the largest, want a list")
	}
	if (vacancy{number: 0, zxid: 1}).precedes(1, 2) {
		t.Error("a transaction after the first place is no proof, want a list")
	}
}

// A vacancy is of use for a short time, while few transactions are made, and once.
func TestVacancyIsOfUse(t *testing.T) {
	var v vacant
	of := vacancy{number: 200, zxid: 1000, at: 5}
	for _, c := range []struct {
		what string
		zxid int64
		want bool
	}{{"few transactions", 1136, true}, {"many transactions", 1137, false}} {
		v.add("a", of)
		if got := v.take("a", c.zxid, 5); (got != nil) != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
		if v.take("a", 1000, 5) != nil {
			t.Errorf("%s: taken twice", c.what)
		}
	}
	v.add("a", of)
	if v.take("a", 1000, of.at.Add(vacantFor+1)) != nil {
		t.Error("of use after long, want nothing")
	}
	for i := range 2*mostLately + 1 {
		v.add(fmt.Sprint(i), of)
	}
	if len(v.locks) > mostLately {
		t.Errorf("%d locks are remembered, want at most %d", len(v.locks), mostLately)
	}
}

// vacate has s acquire and release a lock until its number is at least that, so that a vacancy
// of it is known, and returns that as if the lock was released just now.
func vacate(t *testing.T, s *engine, name string, ttl time.Duration, number int32) vacancy {
	t.Helper()
	for {
		l := request(name, ttl)
		mustAcquire(t, s, l)
		mustRelease(t, s, l)
		v, ok := s.places.vacant.locks[name]
		if !ok {
			t.Fatalf("no vacancy of %q is known after a release", name)
		}
		if v.at = s.clock.Now(); v.number >= number {
			s.places.vacant.add(name, v)
			return v
		}
	}
}

// A lock that was vacant is taken without a list, and its node then has one place. It is not
// taken if somebody else was there meanwhile, also if the numbers have begun again.
func TestLockThatWasVacant(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	native := connect(t)
	const number = 100
	enqueue := func(name string) *place {
		t.Helper()
		p, err := s.places.enqueue(t.Context(), request(name, 10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	remove := func(p *place) {
		t.Helper()
		if p.removeNow(t.Context()) != nil {
			t.Errorf("%s cannot be removed", p.path())
		}
	}
	v := vacate(t, s, "vacant", 10*time.Second, number)
	p := enqueue("vacant")
	if p.early == nil || len(p.early.queue) != 1 || p.early.queue[0] != p.numbered || p.seq != v.number+1 {
		t.Errorf("the queue is %+v, want the place with the number %d", p.early, v.number+1)
	}
	remove(p)

	for what, meanwhile := range map[string]func(dir string, v vacancy){
		"another place is there": func(dir string, _ vacancy) { createPlaces(t, native, dir, 1) },
		"another place is there, and the numbers began again": func(dir string, v vacancy) {
			if err := native.Delete(dir, -1); err != nil {
				t.Fatal(err)
			}
			if _, err := native.Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
			createPlaces(t, native, dir, int(v.number)+1)
		},
	} {
		name := "vacant, but " + what
		v := vacate(t, s, name, 10*time.Second, number)
		meanwhile(DefaultBase+"/"+name, v)
		v.at = s.clock.Now()
		s.places.vacant.add(name, v)
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request(name, 10*time.Second)}); !errors.Is(err, store.ErrBusy) {
			t.Errorf("%s: acquire: %v, want %v", what, err, store.ErrBusy)
		}
		v.at = s.clock.Now()
		s.places.vacant.add(name, v)
		p := enqueue(name)
		if p.early != nil && len(p.early.queue) < 2 {
			t.Errorf("%s: the queue is %+v, want to read it", what, p.early.queue)
		}
		remove(p)
	}
}

// If the lock's node has changed since the lock was vacant, leases may have been broken: the
// queue is read, and so is what was noted. If the node was removed, it is made again.
func TestVacantLockHasChanged(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	native := connect(t)
	for what, change := range map[string]func(dir string) error{
		"changed": func(dir string) error {
			_, err := native.Set(dir, dirRecord{Broken: true}.encode(), -1)
			return err
		},
		"gone": func(dir string) error { return native.Delete(dir, -1) },
	} {
		name := "vacant and " + what
		v := vacate(t, s, name, 10*time.Second, 100)
		if err := change(DefaultBase + "/" + name); err != nil {
			t.Fatal(err)
		}
		v.at = s.clock.Now()
		s.places.vacant.add(name, v)
		l := request(name, 10*time.Second)
		mustAcquire(t, s, l)
		p := s.places.leases.get(leaseKey{l.Name, l.Owner}).place.Load()
		if noted := what == "changed"; p.noted != noted || p.alone == noted {
			t.Errorf("%s: the queue has notes: %v, the place is alone: %v, want %v, %v", what, p.noted, p.alone, noted, !noted)
		}
		mustRelease(t, s, l)
	}
}

// createPlaces makes n places of another kind of client, one after the other, of which the first
// stays.
func createPlaces(t *testing.T, c *zk.Conn, dir string, n int) {
	t.Helper()
	for i := range n {
		path, err := c.CreateProtectedEphemeralSequential(dir+"/lock-", nil, zk.WorldACL(zk.PermAll))
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
