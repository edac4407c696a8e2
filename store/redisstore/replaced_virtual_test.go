package redisstore_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/simnet"
	"github.com/leasehold-dev/leasehold/internal/testenv/simredis"
	"github.com/leasehold-dev/leasehold/store"
)

// replacement returns a function that replaces the data of a server with older data of
// its own replica. The mark still names the server, and no connection breaks.
func replacement(h *simnet.Host) (replace func()) {
	replica := simredis.New("replica", time.Now)
	h.With(func(s *simredis.Server) { replica.Follow(s) })
	replica.Promote("replica's")
	return func() {
		h.With(func(s *simredis.Server) {
			s.Follow(replica)
			s.Promote("again")
		})
	}
}

// Another client holds a lock on two of three servers, and the second loses it with its
// data while a client asks for it. The client never gets it, whichever of its messages the
// replacement comes between: those with which it connects, the request and its answer.
func TestDataIsReplacedWhileAClientAsks(t *testing.T) {
	const delay = 2 * time.Millisecond
	for _, connected := range []bool{true, false} {
		// Replacements fall between the moments at which messages arrive.
		for at := delay / 2; at < 14*delay; at += delay {
			t.Run(fmt.Sprintf("connected=%t/after=%v", connected, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					network, hosts := bubbled(t, 3)
					network.Delay = delay
					holder := openBubbled(t, network, hosts, nil)
					var client *store.Store
					if connected {
						client = openBubbled(t, network, hosts, nil)
						acquire(t, client, request("other"))
					}
					acquire(t, holder, request("other one"))
					replace := replacement(hosts[1])
					acquire(t, holder, request("lock"))
					hosts[2].Do("DEL", "lock", "{lock}:token")
					time.AfterFunc(at, replace)
					if !connected {
						client = openBubbled(t, network, hosts, nil)
					}
					if g, err := client.Acquire(t.Context(), store.AcquireRequest{Lease: request("lock")}); err == nil {
						t.Errorf("a second client gets the lock, with token %d", g.Token)
					}
				})
			})
		}
	}
}

// A client of a single server is notified of replaced data from the first lock on that
// requires it, also over the connection that it has then.
func TestDataIsReplacedAfterAFirstCrashSafeLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, hosts := bubbled(t, 1)
		safe := func(name string) store.Lease {
			r := request(name)
			r.Require = store.CrashSafe
			return r
		}
		holder, client := openBubbled(t, network, hosts, nil), openBubbled(t, network, hosts, nil)
		acquire(t, client, request("plain")) // which needs no pushes
		if _, err := client.Acquire(t.Context(), store.AcquireRequest{Lease: safe("first")}); err == nil {
			t.Fatal("a new server grants a crash-safe lock, want it in quarantine")
		}
		time.Sleep(2 * time.Minute) // until the quarantine is over
		acquire(t, client, safe("first"))
		replace := replacement(hosts[0])
		acquire(t, holder, safe("lock"))
		replace()
		if g, err := client.Acquire(t.Context(), store.AcquireRequest{Lease: safe("lock")}); err == nil {
			t.Errorf("a second client gets the lock, with token %d", g.Token)
		}
	})
}

// A server reports that all keys are gone although its data was not replaced, for example
// because another database was emptied. Its answers and pushes are not lost while the client
// checks the data.
func TestAnswersDuringACheckOfTheData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, hosts := bubbled(t, 3)
		network.Delay = 2 * time.Millisecond
		report := func() {
			for _, h := range hosts {
				h.With(func(s *simredis.Server) { s.Load(s.Data()) })
			}
		}
		holder, client := openBubbled(t, network, hosts, nil), openBubbled(t, network, hosts, nil)
		acquire(t, client, request("other"))

		held := request("lock")
		report()
		acquire(t, holder, held) // which fails if the answers of two servers are lost

		done := make(chan error, 1)
		go func() {
			_, err := client.Wait(t.Context(), store.WaitRequest{Lease: patientWaiter("lock")}, nil)
			done <- err
		}()
		time.Sleep(10 * network.Delay)
		start := time.Now()
		release := func() {
			if err := holder.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
				t.Error(err)
			}
		}
		time.AfterFunc(network.Delay/2, report)
		release() // arrives later than the report is sent; so the push of the hand-off follows it
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 10*network.Delay {
			t.Errorf("the waiter got the lock after %v, want at most ten times the delay", took)
		}
	})
}
