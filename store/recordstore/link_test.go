package recordstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// link is a driver whose requests meet the faults of storetest.
type link struct {
	recordstore.Driver

	mode    mode
	mu      sync.Mutex
	changed chan struct{} // closed when mode changes, or connections are cut
	cuts    int
}

type mode int

const (
	pass mode = iota
	holdRequests
	holdReplies
	dropReplies
	blackhole
	refuse
)

func (l *link) Pass()         { l.set(pass, 0) }
func (l *link) HoldRequests() { l.set(holdRequests, 0) }
func (l *link) HoldReplies()  { l.set(holdReplies, 0) }
func (l *link) DropReplies()  { l.set(dropReplies, 0) }
func (l *link) Blackhole()    { l.set(blackhole, 0) }
func (l *link) Refuse()       { l.set(refuse, 0) }

func (l *link) Cut() int {
	l.set(pass, 1)
	return 1
}

func (l *link) set(m mode, cuts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mode, l.cuts = m, l.cuts+cuts
	if l.changed != nil {
		close(l.changed)
	}
	l.changed = make(chan struct{})
}

// through makes a request. What is held goes on when the mode changes, or late by as much; after a cut it is lost.
func through[T any](ctx context.Context, l *link, late time.Duration, request func(context.Context) (T, error)) (none T, err error) {
	l.mu.Lock()
	m, changed, cuts := l.mode, l.changed, l.cuts
	l.mu.Unlock()
	type answer struct {
		value T
		err   error
	}
	arrived := make(chan answer, 1)
	held := func() bool { // until the mode changes; false if the connection was cut
		<-changed
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.cuts == cuts
	}
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		switch m {
		case refuse:
			arrived <- answer{err: recordstore.ErrRefused}
			return
		case blackhole:
			<-changed
			return
		case holdRequests:
			if !held() {
				return
			}
			time.Sleep(late)
		}
		v, err := request(context.WithoutCancel(ctx))
		if m == dropReplies {
			<-changed
		}
		if m == dropReplies || m == holdReplies && !held() {
			return
		}
		arrived <- answer{v, err}
	}()
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case <-cut:
	}
	select {
	case a := <-arrived:
		return a.value, a.err
	default:
		return none, errNoAnswer
	}
}

func (l *link) Read(ctx context.Context, key string) (recordstore.Item, error) {
	return through(ctx, l, 0, func(ctx context.Context) (recordstore.Item, error) { return l.Driver.Read(ctx, key) })
}

func (l *link) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	// Other requests overtake it.
	return through(ctx, l, 50*time.Millisecond, func(ctx context.Context) (string, error) { return l.Driver.Write(ctx, key, value, version, idle) })
}

func (l *link) List(ctx context.Context, each func(string, recordstore.Item) error) error {
	_, err := through(ctx, l, 0, func(ctx context.Context) (struct{}, error) { return struct{}{}, nil })
	if err != nil {
		return err
	}
	return l.Driver.List(ctx, each)
}

// Each verb meets each fault.
func TestFaults(t *testing.T) {
	for name, kind := range map[string]*server{"dates": {dates: true}, "observed": {}, "forgets": {dates: true, forgets: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := &server{dates: kind.dates, forgets: kind.forgets}
			open := func(d recordstore.Driver) *store.Store {
				s := recordstore.New(d, &recordstore.Options{Poll: 5 * time.Millisecond})
				recordstore.SetClock(s, virtual.Clock())
				return s
			}
			storetest.RunFaults(t, func(t *testing.T) (*store.Store, storetest.Link) {
				srv = &server{dates: kind.dates, forgets: kind.forgets}
				l := &link{Driver: srv.driver()}
				l.Pass()
				return open(l), l
			}, storetest.Options{Second: func(*testing.T) *store.Store { return open(srv.driver()) }, Virtual: true})
		})
	}
}
