package filestore

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// told collects the errors that the reason function of a Wait receives.
type told struct {
	mu   sync.Mutex
	errs []error
}

func (w *told) hear(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

func (w *told) matches(target error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Is(errors.Join(w.errs...), target)
}

// If other processes keep the file busy for longer than the store's limit, a Wait
// reports that and goes on.
func TestWaitRidesOutABusyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	other, hasty := mustOpen(t, path, nil), mustOpen(t, path, nil)
	hasty.limit = 20 * time.Millisecond // not by Options: opening may take its time
	stop := block(t, other)
	defer stop()
	var w told
	r := request("a")
	done := make(chan error, 1)
	go func() {
		_, err := hasty.Wait(t.Context(), store.WaitRequest{Lease: r}, w.hear)
		done <- err
	}()
	poll(t, "the waiter reports that the file is busy", func() bool { return w.matches(store.ErrQuorum) })
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mustRelease(t, other, r)
}

// If the answer to a request is lost, Wait asks again and gets the same lease or
// place.
func TestWaitWithUnknownOutcome(t *testing.T) {
	for what, fault := range map[string]func(commit func() error) error{
		"committed, but the answer was lost": func(commit func() error) error {
			return errors.Join(errCut, commit())
		},
		"not committed": func(func() error) error { return errCut },
	} {
		t.Run(what, func(t *testing.T) {
			f, s, sound := openFaulty(t, nil, SQLite())
			s.limit = 100 * time.Millisecond // which bounds its pauses
			for _, held := range []bool{false, true} {
				holder, r := request("a"), request("a")
				if held {
					mustAcquire(t, sound, holder)
				}
				f.onCommit(fault)
				var w told
				var g store.Grant
				done := make(chan error, 1)
				go func() {
					var err error
					g, err = s.Wait(t.Context(), store.WaitRequest{Lease: r}, w.hear)
					done <- err
				}()
				if held {
					poll(t, "the waiter has one place in the queue", func() bool {
						st, err := sound.Inspect(t.Context(), "a")
						return err == nil && len(st.Queue) == 1 && w.matches(store.ErrBusy)
					})
					mustRelease(t, sound, holder)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if !w.matches(errCut) {
					t.Errorf("the waiter reports %v, want %v", w.errs, errCut)
				}
				if st, err := sound.Inspect(t.Context(), "a"); err != nil || st.Token != g.Token || st.Holder.Owner != r.Owner {
					t.Fatalf("granted %+v, and inspect returns %+v, %v", g, st, err)
				}
				mustRelease(t, sound, r)
			}
			if list, err := sound.List(t.Context(), ""); err != nil || len(list) != 0 {
				t.Fatalf("list: %+v, %v, want no locks", list, err)
			}
		})
	}
}

// A Wait that is cancelled during a commit leaves neither a lease nor a place,
// not even later.
func TestWaitCancelledInTheCommit(t *testing.T) {
	f, s, sound := openFaulty(t, nil, SQLite())
	for _, held := range []bool{false, true} {
		holder, r := request("a"), request("a")
		if held {
			mustAcquire(t, sound, holder)
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.onCommit(func(commit func() error) error {
			err := commit()
			cancel()
			return errors.Join(context.Canceled, err)
		})
		if _, err := s.Wait(ctx, store.WaitRequest{Lease: r}, nil); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
		poll(t, "nothing is left of the attempt", func() bool {
			st, err := sound.Inspect(t.Context(), "a")
			return err == nil && st.Held == held && len(st.Queue) == 0
		})
		if !held {
			continue // the lease had been granted, so no request is under way
		}
		if _, err := sound.Acquire(t.Context(), store.AcquireRequest{Lease: r}); !errors.Is(err, store.ErrNotHeld) {
			t.Fatalf("the cancelled attempt arrives late: %v, want %v", err, store.ErrNotHeld)
		}
		mustRelease(t, sound, holder)
	}
}

// An error that lasts until an administrator acts ends the wait.
func TestWaitEndsAtALastingError(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), nil)
	mustAcquire(t, s, request("a"))
	var w told
	done := make(chan error, 1)
	go func() {
		_, err := s.Wait(t.Context(), store.WaitRequest{Lease: request("a")}, w.hear)
		done <- err
	}()
	poll(t, "the waiter waits", func() bool { return w.matches(store.ErrBusy) })
	if _, err := s.db.ExecContext(t.Context(), "UPDATE leasehold_meta SET schema = ?", schemaVersion+1); err != nil {
		t.Fatal(err)
	}
	err := <-done
	if !errors.Is(err, store.ErrQuorum) {
		t.Fatalf("got %v, want a *store.QuorumError", err)
	}
	said(t, err, "wait for", `"a"`, "newer version")
}

// Waiters only read while nothing changes.
func TestWaitingWritesNothing(t *testing.T) {
	f, s, sound := openFaulty(t, nil, SQLite())
	mustAcquire(t, sound, request("a"))
	var commits atomic.Int64
	count := func(commit func() error) error {
		commits.Add(1)
		return commit()
	}
	f.commit.Store(&count)
	const waiters = 5
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var all [waiters]told
	for i := range waiters {
		wg.Go(func() {
			if _, err := s.Wait(ctx, store.WaitRequest{Lease: request("a")}, all[i].hear); !errors.Is(err, context.Canceled) {
				t.Errorf("wait: %v, want %v", err, context.Canceled)
			}
		})
	}
	for i := range waiters {
		poll(t, "all waiters wait", func() bool { return all[i].matches(store.ErrBusy) })
	}
	since := f.begun.Load()
	poll(t, "the waiters read the row repeatedly", func() bool { return f.begun.Load() >= since+10 })
	if n := commits.Load(); n != waiters {
		t.Errorf("%d waiters wrote %d times, want once each", waiters, n)
	}
	cancel()
	wg.Wait()
}

// A release wakes the waiters of its own process at once.
func TestReleaseWakesWaitersOfItsProcess(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), nil)
	holder := request("a")
	mustAcquire(t, s, holder)
	var queue []*waiting
	for range 2 {
		w := &waiting{s: s, r: store.WaitRequest{Lease: request("a")}, reason: func(error) {}}
		bell, remove := s.bells.hang(w.r.Name, w.r.Owner, false)
		defer remove()
		w.bell = bell
		w.stands(t)
		queue = append(queue, w)
	}
	mustRelease(t, s, holder)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for i, w := range queue { // the new holder, and the new head of the queue
		if err := w.pause(ctx, time.Hour); err != nil {
			t.Errorf("waiter %d was not woken: %v", i+1, err)
		}
	}
	// A waiter that leaves wakes the next one, which then reads the row often.
	other, remove := s.bells.hang("a", "other", false)
	if first := s.bells.stands("a", queue[1].bell, 1); !first {
		t.Error("the first waiter of the process does not read often")
	}
	if first := s.bells.stands("a", other, 2); first {
		t.Error("the second waiter of the process reads often")
	}
	s.bells.stands("a", queue[0].bell, 3)
	_, removeNew := s.bells.hang("a", "new", false)
	defer removeNew()
	remove()
	if err := queue[1].pause(ctx, time.Hour); err != nil || len(other.c) != 0 || len(queue[0].bell.c) != 0 {
		t.Errorf("the next waiter of the process was not woken, or others were: %v", err)
	}
}

// A waiter that has read the row wakes other waiters of its process: those that the lock was
// handed to, and the one that is now the first, whatever position each last read itself.
func TestReaderWakesTheOthers(t *testing.T) {
	var b bells
	reader, _ := b.hang("a", "reader", false)
	first, _ := b.hang("a", "first", false)
	granted, _ := b.hang("a", "granted", false)
	last, _ := b.hang("a", "last", false)
	b.stands("a", reader, 2)
	b.stands("a", first, 5) // it read long ago
	b.stands("a", granted, 1)
	b.share("a", rule.Record{
		Holds: []rule.Hold{{Owner: "granted"}},
		Queue: []rule.Place{{Owner: "elsewhere"}, {Owner: "first"}, {Owner: "reader"}, {Owner: "last"}},
	}, reader)
	for _, c := range []struct {
		bell     *bell
		position int
		rings    int
	}{{reader, 3, 0}, {first, 2, 1}, {granted, 0, 1}, {last, 4, 0}} {
		if c.bell.position != c.position || len(c.bell.c) != c.rings {
			t.Errorf("%s: position %d, woken %d times; want %d, %d", c.bell.owner, c.bell.position, len(c.bell.c), c.position, c.rings)
		}
	}
}

// At most one of many requests for a lock comes before a release of the same process.
func TestReleaseOvertakesRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	synctest.Test(t, func(t *testing.T) {
		db := handle(t, path)
		defer db.Close()
		s, err := New(t.Context(), db, SQLite(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.writers <- struct{}{} // a writer is busy
		var wg sync.WaitGroup
		asked, before := 0, 0
		for range 20 {
			wg.Go(func() {
				if _, err := s.ask(t.Context(), func(*step) error { asked++; return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		wg.Go(func() {
			if _, err := s.write(t.Context(), func(*step) error { before = asked; return nil }); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		<-s.writers
		wg.Wait()
		if before > 1 {
			t.Errorf("%d of 20 requests came before the release, want at most 1", before)
		}
	})
}

// stands makes w ask for the lock once, and requires that it is busy.
func (w *waiting) stands(t *testing.T) {
	t.Helper()
	if w.bell == nil {
		w.bell = &bell{wait: "of a test"}
	}
	if ans, _, err := w.ask(t.Context()); err != nil || ans.Verdict != rule.Busy {
		t.Fatalf("ask: %+v, %v, want a busy lock", ans, err)
	}
}

// The next call of any kind hands an expired lease to the first waiter, not to
// the caller, unless the caller barges.
func TestExpiredLeaseIsHandedOn(t *testing.T) {
	m := newFakeMachine()
	s := m.open(t, filepath.Join(t.TempDir(), "locks.db"))
	for _, name := range []string{"asks", "waits", "barges"} {
		holder := request(name)
		mustAcquire(t, s, holder)
		first := &waiting{s: s, r: store.WaitRequest{Lease: request(name)}}
		first.r.TTL *= 2
		first.stands(t)
		m.sleep(holder.TTL)
		if st, err := s.Inspect(t.Context(), name); err != nil || st.Held || len(st.Queue) != 1 {
			t.Fatalf("inspect: %+v, %v, want no holder and one waiter", st, err)
		}
		r := request(name)
		switch name {
		case "asks":
			var busy *store.BusyError
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); !errors.As(err, &busy) || busy.Holder.Owner != first.r.Owner || busy.ExpiresIn != first.r.TTL-holder.TTL {
				t.Errorf("acquire: got %v, want busy, held by the first waiter", err)
			}
		case "waits":
			(&waiting{s: s, r: store.WaitRequest{Lease: r}}).stands(t)
		case "barges":
			if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: r, Barge: true}, nil); err != nil {
				t.Errorf("wait with Barge: %v", err)
			}
			mustRelease(t, s, r)
		}
		st, err := s.Inspect(t.Context(), name)
		if err != nil || st.Holder.Owner != first.r.Owner {
			t.Errorf("inspect after an owner that %s: %+v, %v, want the first waiter as the holder", name, st, err)
		}
	}
}

// The interval between two reads of the row depends on the waiter's position and
// socket.
func TestInterval(t *testing.T) {
	const far = time.Hour
	for _, c := range []struct {
		position, looks int
		expiresIn, ttl  time.Duration
		least, most     time.Duration
		behind          bool // another waiter of the same process
		socket          string
		took            time.Duration // by the last read
	}{
		{1, 0, far, far, 10 * time.Millisecond, 10 * time.Millisecond, false, "", 0},
		{1, 1000, far, far, 50 * time.Millisecond, 50 * time.Millisecond, false, "", 0},
		{2, 0, far, far, 50 * time.Millisecond, 50 * time.Millisecond, false, "", 0},
		{2, 1000, far, far, 50 * time.Millisecond, 50 * time.Millisecond, false, "", 0},
		{8, 0, far, far, 200 * time.Millisecond, 200 * time.Millisecond, false, "", 0},
		{5000, 0, far, far, time.Second, time.Second, false, "", 0},
		// The holder's lease ends first.
		{1, 1000, 7 * time.Millisecond, far, 7 * time.Millisecond, 7 * time.Millisecond, false, "", 0},
		{1, 1000, 0, far, time.Millisecond, time.Millisecond, false, "", 0},
		{3, 0, 0, far, 75 * time.Millisecond, 75 * time.Millisecond, false, "", 0}, // a waiter before this one gets it
		// The waiter's place ends first.
		{100, 0, far, 800 * time.Millisecond, 0, 100 * time.Millisecond, false, "", 0},
		{1, 1000, far, 80 * time.Millisecond, 0, 10 * time.Millisecond, false, "", 0},
		{2, 0, far, far, 8 * time.Second, 8 * time.Second, true, "", 0},
		{2, 0, far, 8 * time.Millisecond, time.Millisecond, time.Millisecond, true, "", 0},
		// A waiter never reads more often than each millisecond.
		{1, 0, far, time.Millisecond, time.Millisecond, time.Millisecond, false, "", 0},
		// With a socket, reads are rare.
		{1, 0, far, far, time.Second, time.Second, false, "x", 0},
		{2, 0, far, far, 2 * time.Second, 2 * time.Second, false, "x", 0},
		{2, 0, far, far, 8 * time.Second, 8 * time.Second, true, "x", 0},
		// The first waiter still reads at the end of the holder's lease, and a later one soon
		// after, in case all before it are dead.
		{1, 1000, 7 * time.Millisecond, far, 7 * time.Millisecond, 7 * time.Millisecond, false, "x", 0},
		{3, 0, 100 * time.Millisecond, far, 175 * time.Millisecond, 175 * time.Millisecond, false, "x", 0},
		{3, 0, -time.Second, far, 75 * time.Millisecond, 75 * time.Millisecond, false, "x", 0},
		{1, 0, far, 80 * time.Millisecond, 0, 10 * time.Millisecond, false, "x", 0},
		// On a machine where reads last long, they are rarer, but places are still kept.
		{1, 0, far, far, 800 * time.Millisecond, 800 * time.Millisecond, false, "", 100 * time.Millisecond},
		{1, 0, far, 800 * time.Millisecond, 0, 100 * time.Millisecond, false, "", 100 * time.Millisecond},
	} {
		w := &waiting{r: store.WaitRequest{Lease: store.Lease{TTL: c.ttl}}, position: c.position, socket: c.socket, first: !c.behind, looks: c.looks, expiresIn: c.expiresIn, took: c.took}
		if d := w.interval(); d < c.least || d > c.most {
			t.Errorf("%+v: reads again after %v, want %v to %v", c, d, c.least, c.most)
		}
	}
}

// Places are refreshed in time, and a waiter whose place is gone asks again.
func TestPlacesAreRefreshed(t *testing.T) {
	m := newFakeMachine()
	s := m.open(t, filepath.Join(t.TempDir(), "locks.db"))
	holder := request("a")
	holder.TTL = time.Hour
	mustAcquire(t, s, holder)
	r := request("a")
	r.TTL = time.Minute
	done := make(chan error, 1)
	go func() {
		_, err := s.Wait(t.Context(), store.WaitRequest{Lease: r}, nil)
		done <- err
	}()
	left := func() time.Duration {
		st, err := s.Inspect(t.Context(), "a")
		if err != nil || len(st.Queue) != 1 {
			return 0
		}
		return st.Queue[0].ExpiresIn
	}
	poll(t, "the waiter is in the queue", func() bool { return left() == r.TTL })
	for range 3 {
		m.sleep(25 * time.Second)
		poll(t, "the place is refreshed", func() bool { return left() == r.TTL })
	}
	m.sleep(2 * time.Minute) // in one step, so that the waiter cannot refresh it
	poll(t, "the waiter is in the queue again", func() bool { return left() == r.TTL })
	mustRelease(t, s, holder)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A record of a version without a queue is still valid.
func TestRecordWithoutAQueue(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), nil)
	putRow(t, s, []byte(`{"spec":{"limit":1},"holds":[{"owner":"ann","meta":"x","weight":1,"count":1,"token":7,"expiry":9000000000000000000}],"token":7}`))
	ann := store.Lease{Name: "stock", Owner: "ann", TTL: time.Minute}
	var w told
	done := make(chan error, 1)
	go func() {
		g, err := s.Wait(t.Context(), store.WaitRequest{Lease: request("stock")}, w.hear)
		if g.Token <= 7 {
			err = errors.Join(err, errors.New("not above the token of the holder"))
		}
		done <- err
	}()
	poll(t, "the waiter waits", func() bool { return w.matches(store.ErrBusy) })
	mustRelease(t, s, ann)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
