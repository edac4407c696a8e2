package redisdoor

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// slowRelease is a store that is asked to release a lock and answers when it is told to, or when
// the context ends.
type slowRelease struct {
	store.Engine
	asked  chan store.ReleaseRequest
	answer chan bool
}

func (s slowRelease) Release(ctx context.Context, r store.ReleaseRequest) error {
	s.asked <- r
	select {
	case <-s.answer:
		return s.Engine.Release(ctx, r)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A release that was sent last, and whose client then broke the connection, is done.
func TestReleaseOfAClientThatIsGone(t *testing.T) {
	t.Parallel()
	s := slowRelease{elsewhere(), make(chan store.ReleaseRequest, 1), make(chan bool, 1)}
	address, st := open(t, Options{Store: store.New(s)})
	t.Cleanup(func() { st.Close() })
	gone, other := dial(t, address), dial(t, address)
	gone.wants("OK", "SET lock v NX PX 600000")
	gone.send(encode("DELIFEQ", "lock", "v"))
	<-s.asked
	if err := gone.nc.(*net.TCPConn).SetLinger(0); err != nil { // so that Close resets it
		t.Fatal(err)
	}
	gone.nc.Close()
	for range 10 { // meanwhile the server sees it
		other.wants("PONG", "PING")
	}
	s.answer <- true
	for until := time.Now().Add(20 * time.Second); other.says("SET lock w NX PX 600000") != "OK"; {
		if time.Now().After(until) {
			t.Fatal("the lock stays taken")
		}
		time.Sleep(time.Millisecond)
	}
}

// lostRenewals is a store whose answers to renewals are lost.
type lostRenewals struct{ slowRelease }

func (s lostRenewals) Renew(ctx context.Context, leases []store.Lease) []error {
	s.Engine.Renew(ctx, leases)
	return []error{errors.New("the answer is lost")}
}

// A release after a renewal whose answer was lost says so, since the renewal may still be under way.
func TestReleaseAfterLostRenewal(t *testing.T) {
	t.Parallel()
	s := slowRelease{elsewhere(), make(chan store.ReleaseRequest, 1), make(chan bool, 1)}
	s.answer <- true
	address, st := open(t, Options{Store: store.New(lostRenewals{s})})
	t.Cleanup(func() { st.Close() })
	c := dial(t, address)
	c.wants("OK", "SET lock v NX PX 600000")
	c.wants("(error) ERR the answer is lost", "SET lock v XX PX 700000")
	c.wants("(integer) 1", "DELIFEQ lock v")
	if r := <-s.asked; !r.Renewed {
		t.Error("the store is not told of the renewal")
	}
}

// lossy is a store to which requests, and from which answers, are lost.
type lossy struct{ store.Engine }

var errLost = errors.New("lost")

// lose does f, or loses the request or the answer.
func lose(f func() error) error {
	switch rand.IntN(16) {
	case 0:
		return errLost
	case 1:
		f()
		return errLost
	}
	return f()
}

func (s lossy) Acquire(ctx context.Context, r store.AcquireRequest) (g store.Grant, err error) {
	err = lose(func() error { g, err = s.Engine.Acquire(ctx, r); return err })
	return g, err
}

func (s lossy) Renew(ctx context.Context, leases []store.Lease) []error {
	return []error{lose(func() error { return s.Engine.Renew(ctx, leases)[0] })}
}

func (s lossy) Release(ctx context.Context, r store.ReleaseRequest) error {
	return lose(func() error { return s.Engine.Release(ctx, r) })
}

func (s lossy) Inspect(ctx context.Context, name string) (st store.State, err error) {
	err = lose(func() error { st, err = s.Engine.Inspect(ctx, name); return err })
	return st, err
}

// Clients of two servers whose store loses requests and answers never hold the lock together, and
// the replies to a holder are right or errors.
func TestOneHolderWhileAnswersAreLost(t *testing.T) {
	t.Parallel()
	t.Run("started", func(t *testing.T) { testOneHolder(t, &starting{Engine: lossy{elsewhere()}}) })
	t.Run("elsewhere", func(t *testing.T) { testOneHolder(t, lossy{elsewhere()}) })
}

func testOneHolder(t *testing.T, e store.Engine) {
	t.Parallel()
	st := store.New(e)
	t.Cleanup(func() { st.Close() })
	one, _ := open(t, Options{Store: st})
	two, _ := open(t, Options{Store: st})
	takes := []struct {
		words string
		got   string // if it is ours
	}{
		{"SET lock VALUE NX PX 600000", "OK"},
		{"SET lock VALUE NX GET PX 600000", "(nil)"},
		{"EVALSHA b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79 1 lock VALUE 600000", "(integer) 1"},
	}
	var inside, turns atomic.Int64
	var ended sync.WaitGroup
	for i := range 6 {
		value := strconv.Itoa(i)
		servers := []*client{dial(t, one), dial(t, two)}
		// says asks one of the servers until it has an answer.
		says := func(words string) string {
			for {
				if got := servers[rand.IntN(2)].says(words); got != "(error) ERR lost" {
					return got
				}
			}
		}
		ended.Go(func() {
			for range 200 {
				take := takes[rand.IntN(len(takes))]
				if servers[rand.IntN(2)].says(strings.Replace(take.words, "VALUE", value, 1)) == take.got {
					turns.Add(1)
					if n := inside.Add(1); n != 1 {
						t.Errorf("%d holders", n)
					}
					if got := says("SET lock " + value + " XX PX 600000"); got != "OK" {
						t.Errorf("the holder extends: %s", got)
					}
					if got := says("GET lock"); got != strconv.Quote(value) {
						t.Errorf("the holder looks: %s", got)
					}
					inside.Add(-1)
				}
				says("DELIFEQ lock " + value) // also after an error: it may be ours
			}
		})
	}
	ended.Wait()
	if turns.Load() < 6 {
		t.Errorf("%d turns", turns.Load())
	}
}
