package recordstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// machine is the machine that peers run on.
type machine struct {
	server server
	mu     sync.Mutex
	ended  map[string]bool
	peers  map[string]*peer
}

// peer is a process. It is told of versions only by Ring.
type peer struct {
	recordstore.Driver
	m       *machine
	session string
	rung    chan recordstore.Item
}

func (m *machine) peer(session string) *peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.peers == nil {
		m.server.dates, m.server.class = true, store.CrashSafe
		m.ended, m.peers = map[string]bool{}, map[string]*peer{}
	}
	p := &peer{Driver: m.server.driver(), m: m, session: session, rung: make(chan recordstore.Item, 16)}
	m.peers[session] = p
	return p
}

func (m *machine) kill(session string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended[session] = true
}

func (p *peer) Session() string { return p.session }

func (p *peer) Ended(session string) bool {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	return p.m.ended[session]
}

func (p *peer) Ring(session, key string) {
	p.m.mu.Lock()
	to := p.m.peers[session]
	p.m.mu.Unlock()
	it, err := p.Read(context.Background(), key)
	if err != nil {
		panic(err)
	}
	select {
	case to.rung <- it:
	default:
	}
}

func (p *peer) Floor() uint64 { return uint64(time.Now().UnixMicro()) >> 11 }

func (p *peer) Watch(context.Context, string) (<-chan recordstore.Item, error) { return p.rung, nil }

var _ recordstore.Peers = (*peer)(nil)
var _ recordstore.Watcher = (*peer)(nil)

// open opens a store that never looks by itself.
func (p *peer) open() *store.Store {
	return open(p, &recordstore.Options{Look: time.Hour}, virtual.Clock())
}

// The lock of a process that has ended goes to the first waiter that lives within the time of
// a glance, and past waiters that have ended.
func TestEndedProcessesAreSkipped(t *testing.T) {
	for _, released := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := &machine{}
			holder, dead, next := m.peer("holder").open(), m.peer("dead").open(), m.peer("next").open()
			defer holder.Close()
			defer dead.Close()
			defer next.Close()
			held := lease(time.Hour)
			if _, err := holder.Acquire(t.Context(), store.AcquireRequest{Lease: held}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go dead.Wait(ctx, store.WaitRequest{Lease: lease(time.Hour)}, nil)
			synctest.Wait()
			granted := make(chan error)
			go func() {
				_, err := next.Wait(ctx, store.WaitRequest{Lease: lease(time.Hour)}, nil)
				granted <- err
			}()
			synctest.Wait()
			m.kill("dead")
			began := time.Now()
			if released {
				if err := holder.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
					t.Fatal(err)
				}
			} else {
				m.kill("holder")
			}
			if err := <-granted; err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > time.Second || released && took > 0 {
				t.Errorf("released %v: granted after %v", released, took)
			}
			if _, err := next.Acquire(t.Context(), store.AcquireRequest{Lease: lease(time.Hour)}); !errors.Is(err, store.ErrBusy) {
				t.Errorf("the next process has the lock: acquire: %v, want %v", err, store.ErrBusy)
			}
		})
	}
}

// A hand-off among processes of one machine costs one write, though the store's class is above
// efficiency, and wakes the waiter.
func TestHandOffToAPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{}
		a, b := m.peer("a").open(), m.peer("b").open()
		defer a.Close()
		defer b.Close()
		held := lease(time.Hour)
		if _, err := a.Acquire(t.Context(), store.AcquireRequest{Lease: held}); err != nil {
			t.Fatal(err)
		}
		granted := make(chan error)
		go func() {
			_, err := b.Wait(t.Context(), store.WaitRequest{Lease: lease(time.Hour)}, nil)
			granted <- err
		}()
		synctest.Wait()
		began, writes := time.Now(), m.server.writes
		if err := a.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
			t.Fatal(err)
		}
		if err := <-granted; err != nil {
			t.Fatal(err)
		}
		if n, took := m.server.writes-writes, time.Since(began); n != 1 || took > 0 {
			t.Errorf("%d writes and %v, want 1 write at once", n, took)
		}
	})
}
