package zkstore

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
	"github.com/leasehold-dev/leasehold/store"
)

// Clients that release a lock and queue for it again make few requests for a turn. Of two clients,
// each releases and queues with one, lists the queue, and then watches two places and lists the
// queue again in one go. Of more, each releases and queues with one, watches one place, and lists the
// queue when that is gone. An uncontended lock takes three requests to lock and unlock, and two if it was
// released often before.
//
// The server counts. It also counts the touches of sessions, which are rare with so long a
// tick.
func TestRequestsOfATurn(t *testing.T) {
	t.Parallel() // it mostly waits
	server, ttl := patientServer(t)
	for clients, most := range map[int]float64{2: 5.5, 16: 4.5} {
		stores := make([]*engine, clients)
		for i := range stores {
			stores[i] = mustOpen(t, &Options{servers: []string{server.Addr}})
			l := request(fmt.Sprintf("own %d of %d", i, clients), ttl) // begins the session
			mustAcquire(t, stores[i], l)
			mustRelease(t, stores[i], l)
		}
		name := fmt.Sprintf("turns of %d", clients)
		turns := 600 / clients
		var ready, wg sync.WaitGroup
		begin := make(chan struct{})
		ready.Add(clients)
		for _, s := range stores {
			wg.Go(func() { turnsInARow(t, s, name, ttl, turns, ready.Done, begin) })
		}
		ready.Wait()
		before := requestsTo(t, server)
		close(begin)
		wg.Wait()
		of := float64(requestsTo(t, server)-before) / float64(clients*turns)
		t.Logf("%d clients: %.2f requests a turn", clients, of)
		if of > most {
			t.Errorf("%d clients: %.2f requests a turn, want at most %.2f", clients, of, most)
		}
		const times = 100
		for often, most := range map[bool]float64{false: 3.25, true: 2.25} {
			l := request(fmt.Sprintf("alone %v of %d", often, clients), ttl)
			if often {
				releaseOften(t, stores[0], l.Name, ttl, 100)
			}
			before := requestsTo(t, server)
			for range times {
				l.Owner = store.NewOwner()
				mustAcquire(t, stores[0], l)
				mustRelease(t, stores[0], l)
				if !often {
					clear(stores[0].free.last)
				}
			}
			if of := float64(requestsTo(t, server)-before) / times; of > most {
				t.Errorf("released often before: %v: %.2f requests to lock and unlock, want at most %.2f", often, of, most)
			}
		}
	}
}

// turnsInARow has so many turns once all are ready, and queues for the next one with each
// release.
func turnsInARow(t *testing.T, s *engine, name string, ttl time.Duration, turns int, ready func(), begin <-chan struct{}) {
	next := func() store.WaitRequest { return store.WaitRequest{Lease: request(name, ttl)} }
	r := next()
	ready()
	<-begin
	for i := range turns {
		if _, err := s.Wait(t.Context(), r, func(error) {}); err != nil {
			t.Errorf("wait: %v", err)
			return
		}
		release, then := store.ReleaseRequest{Lease: r.Lease}, next()
		var err error
		if i+1 < turns {
			_, err = s.ReleaseAndRejoin(t.Context(), release, then)
		} else {
			err = s.Release(t.Context(), release)
		}
		if err != nil {
			t.Errorf("release: %v", err)
			return
		}
		r = then
	}
}

var received = regexp.MustCompile(`(?m)^Received: (\d+)$`)

// requestsTo returns how many requests the server has received.
func requestsTo(t *testing.T, s *zktest.Server) int {
	t.Helper()
	text, err := s.Ask("srvr")
	if err != nil {
		t.Fatal(err)
	}
	m := received.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("the server says %q", text)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
