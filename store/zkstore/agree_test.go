package zkstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// fakeTree has the places of one lock. Each of its calls is one step, which the fake
// scheduler lets happen when it is its turn.
type fakeTree struct {
	turns *turns
	zxid  int64
	seq   int32
	nodes map[string]zk.Node
	// granted has what each present holder was granted.
	granted map[string]granted
	last    map[int64]fence.Token // the largest that was granted, by slot if each has its own
}

type granted struct {
	token fence.Token
	slot  int64
}

// read implements placeStore.
func (f *fakeTree) read(_ context.Context, p string) (agreed, error) {
	f.turns.take()
	n, ok := f.nodes[path.Base(p)]
	if !ok {
		return agreed{}, errChanged
	}
	rec, _ := decodeRecord(n.Data)
	return agreed{rec, n.Version, n.Czxid}, nil
}

// write implements placeStore.
func (f *fakeTree) write(_ context.Context, a agreed, p string, behind ...string) (agreed, error) {
	f.turns.take()
	for _, before := range behind {
		if _, ok := f.nodes[path.Base(before)]; !ok {
			return a, errChanged
		}
	}
	n, ok := f.nodes[path.Base(p)]
	if !ok || n.Version != a.version {
		return a, errChanged
	}
	f.zxid++
	a.version++
	n.Data, n.Version = a.encode(), a.version
	f.nodes[path.Base(p)] = n
	return a, nil
}

// create makes a place.
func (f *fakeTree) create(spec rule.Spec, weight int64) string {
	f.turns.take()
	f.zxid++
	f.seq++
	name := placeName(newMark("o"), spec, weight) + fmt.Sprintf("%010d", f.seq)
	f.nodes[name] = zk.Node{Data: recordOf(store.Lease{Owner: "o", TTL: time.Second}).encode(), Czxid: f.zxid}
	return name
}

// list returns the queue.
func (f *fakeTree) list() queue {
	f.turns.take()
	var names []string
	for name := range f.nodes {
		names = append(names, name)
	}
	return queueOf(names)
}

// leave removes a place.
func (f *fakeTree) leave(name string) {
	f.turns.take()
	f.zxid++
	delete(f.nodes, name)
	delete(f.granted, name)
}

// hold records what a holder was granted, and returns an error if that conflicts with another
// holder or an earlier token.
func (f *fakeTree) hold(c numbered, g granted) error {
	f.turns.take()
	if _, there := f.nodes[c.name]; !there {
		return nil
	}
	for name, o := range f.granted {
		switch {
		case !c.needsOthers():
			return fmt.Errorf("%s holds the lock beside the writer %s", name, c.name)
		case c.spec.Shared && o.token != g.token:
			return fmt.Errorf("the readers %s and %s have the tokens %d and %d", name, c.name, o.token, g.token)
		case !c.spec.Shared && o.slot == g.slot, g.slot < 0, g.slot >= c.spec.Limit:
			return fmt.Errorf("the holders %s and %s have slot %d", name, c.name, g.slot)
		}
	}
	slot := g.slot
	if c.spec.Shared {
		slot = 0
	}
	if g.token < f.last[slot] {
		return fmt.Errorf("%s has token %d after %d", c.name, g.token, f.last[slot])
	}
	f.granted[c.name], f.last[slot] = g, g.token
	return nil
}

// turns lets one goroutine go on at a time, in an order that a seed decides.
type turns struct {
	mu      sync.Mutex
	random  *rand.Rand
	running int
	waiting []chan struct{}
}

// take waits for the turn of a goroutine, which ends with the next call of take or end.
func (s *turns) take() {
	mine := make(chan struct{})
	s.mu.Lock()
	s.waiting = append(s.waiting, mine)
	s.nextLocked()
	s.mu.Unlock()
	<-mine
}

func (s *turns) nextLocked() {
	if s.running--; s.running == 0 && len(s.waiting) > 0 {
		i := s.random.IntN(len(s.waiting))
		close(s.waiting[i])
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.running = 1
	}
}

func (s *turns) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextLocked()
}

// Holders that come and go agree on slots and on the token of readers, whatever the order
// of their steps, and also if they leave between any two of them.
func TestHoldersAgree(t *testing.T) {
	for _, spec := range []rule.Spec{rule.ReadWrite, rule.Semaphore(3), {Limit: 3, Shared: true}} {
		for seed := range uint64(400) {
			if err := agreeInSomeOrder(spec, seed); err != nil {
				t.Fatalf("%+v, seed %d: %v", spec, seed, err)
			}
		}
	}
}

func agreeInSomeOrder(spec rule.Spec, seed uint64) error {
	const clients, rounds = 5, 3
	random := rand.New(rand.NewPCG(seed, 0))
	f := &fakeTree{turns: &turns{random: random, running: clients}, nodes: map[string]zk.Node{}, granted: map[string]granted{}, last: map[int64]fence.Token{}}
	errs := make(chan error, clients)
	for range clients {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		go func() {
			defer f.turns.end()
			var err error
			for range rounds {
				err = errors.Join(err, f.comeAndGo(spec, own))
			}
			errs <- err
		}()
	}
	var all error
	for range clients {
		all = errors.Join(all, <-errs)
	}
	return all
}

// comeAndGo is one client that holds the lock, or gives up after some looks.
func (f *fakeTree) comeAndGo(spec rule.Spec, random *rand.Rand) error {
	weight := int64(1)
	if random.IntN(8) == 0 {
		weight = spec.Limit
	}
	name := f.create(spec, weight)
	defer f.leave(name)
	for range 1 + random.IntN(12) {
		q := f.list()
		me := q.find(name)
		if q.owns(me).Verdict != rule.Granted {
			continue
		}
		rec := record{Token: tokenOf(record{}, f.nodeOf(name).Czxid)}
		if q[me].needsOthers() {
			a, err := agree(context.Background(), f, "/", q, me)
			if err != nil {
				continue // it has changed
			}
			rec = a.record
			if !rec.Agreed {
				rec = rec.first(q[me], a.czxid)
			}
		}
		if !spec.Shared {
			rec.Token = tokenOf(record{}, f.nodeOf(name).Czxid)
		}
		if err := f.hold(q[me], granted{rec.Token, rec.slot(q[me])}); err != nil {
			return err
		}
		for range random.IntN(12) {
			f.list() // stays for a while
		}
		return nil
	}
	return nil
}

func (f *fakeTree) nodeOf(name string) zk.Node {
	f.turns.take()
	return f.nodes[name]
}
