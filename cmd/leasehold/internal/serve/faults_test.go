package serve_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// faulty is a network that loses requests and answers, and delivers requests late.
type faulty struct {
	http.RoundTripper
	lose, reply, late float64
	n, batches        atomic.Int64
	stalled           chan struct{} // told of each request about the lock called stall, which gets no answer

	mu     sync.Mutex
	random *rand.Rand
	under  sync.WaitGroup // requests that are delivered late
}

var errLost = errors.New("the network lost it")

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/stall/acquire") {
		select {
		case f.stalled <- struct{}{}:
		default:
		}
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if r.URL.Path == "/v1/batch" {
		f.batches.Add(1)
	}
	f.mu.Lock()
	p := f.random.Float64()
	f.mu.Unlock()
	streams := r.Header.Get("Accept") == "application/x-ndjson" && r.URL.Path != "/v1/batch"
	switch {
	case p < f.lose:
		f.n.Add(1)
		return nil, errLost
	case p < f.lose+f.reply && !streams:
		f.n.Add(1)
		resp, err := f.RoundTripper.RoundTrip(r)
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return nil, errLost
	case p < f.lose+f.reply+f.late && !streams && r.URL.Path != "/v1/store":
		f.n.Add(1)
		var body []byte
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body)
		}
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		f.under.Go(func() {
			time.Sleep(40 * time.Millisecond)
			if resp, err := f.RoundTripper.RoundTrip(again); err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
		return nil, errLost
	}
	return f.RoundTripper.RoundTrip(r)
}

func (f *faulty) CloseIdleConnections() {
	f.under.Wait()
	f.RoundTripper.(*http.Transport).CloseIdleConnections()
}

// The suite holds over two servers while one request in six is lost, is answered with a lost
// answer, or arrives late.
func TestConformanceUnderFaults(t *testing.T) {
	var shared *store.Store
	var urls string
	seed := uint64(0)
	var all []*faulty
	open := func(t *testing.T) *store.Store {
		seed++
		f := &faulty{RoundTripper: &http.Transport{MaxIdleConnsPerHost: 64}, lose: 0.05, reply: 0.06, late: 0.05, random: rand.New(rand.NewPCG(1, seed))}
		all = append(all, f)
		st := remote(t, urls, f)
		if seed%2 == 0 { // calls go in batches, since four requests are under way
			f.stalled = make(chan struct{}, 4)
			for range 4 {
				f.under.Go(func() {
					st.Acquire(context.Background(), store.AcquireRequest{Lease: store.Lease{Name: "stall", Owner: store.NewOwner(), TTL: time.Minute}})
				})
			}
			for range 4 {
				<-f.stalled
			}
		}
		return st
	}
	storetest.Run(t, func(t *testing.T) *store.Store {
		shared = memstore.New(nil)
		a, _ := start(t, serve.Options{Store: shared})
		b, _ := start(t, serve.Options{Store: shared})
		urls = a + "," + strings.TrimPrefix(b, "http://")
		return open(t)
	}, storetest.Options{Second: open, ShortTTL: 500 * time.Millisecond})
	n, batches := int64(0), int64(0)
	for _, f := range all {
		n, batches = n+f.n.Load(), batches+f.batches.Load()
	}
	if n < 500 || batches < 100 {
		t.Errorf("%d faults and %d batches, want 500 and 100 at least", n, batches)
	}
}
