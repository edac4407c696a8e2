package driver

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// oracle is a node with a given reply for each lease.
type oracle struct {
	index int
	says  map[string]Reply // by the name of the lock
	full  bool             // it refuses all calls
	apart bool             // it refuses calls about more than one lease

	mu     sync.Mutex
	put    []Call[[]Question]
	healed []string
	open   sync.WaitGroup // calls without a reply yet
}

func (o *oracle) Addr() string { return fmt.Sprint("node", o.index) }

func (o *oracle) Put(c Call[[]Question]) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q := c.Payload; q[0].Op == quorum.Heal {
		o.healed = append(o.healed, q[0].Lease.Name)
		return nil // nothing waits for the reply
	}
	if o.full {
		return errors.New("too many requests wait for it")
	}
	o.open.Add(1)
	o.put = append(o.put, c)
	if !c.More {
		go o.Flush()
	}
	return nil
}

func (o *oracle) Flush() {
	o.mu.Lock()
	put := o.put
	o.put = nil
	o.mu.Unlock()
	for _, c := range put {
		o.answer(c)
		o.open.Done()
	}
}

// healedLeases waits until all calls have a reply, and returns the leases that were healed.
func (o *oracle) healedLeases() string {
	o.open.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Sprint(o.Addr(), slices.Sorted(slices.Values(o.healed)))
}

func (o *oracle) answer(c Call[[]Question]) {
	asked := c.Payload
	if len(asked) == 1 {
		c.To.Receive(o.index, c.Tag, o.says[asked[0].Lease.Name])
		return
	}
	if o.apart {
		c.To.(BatchReceiver).ReceiveBatch(o.index, c.Tag, c.Leases, Reply{Kind: quorum.Unsent, RetrySingly: true}, nil)
		return
	}
	// The usual reply is that about one of the leases. Some exceptions repeat it.
	usual := o.says[asked[len(asked)/2].Lease.Name]
	var others []Exception
	for i, q := range asked {
		if a := o.says[q.Lease.Name]; a != usual || i == 0 {
			others = append(others, Exception{i, a})
		}
	}
	c.To.(BatchReceiver).ReceiveBatch(o.index, c.Tag, c.Leases, usual, others)
}

// The outcome of a renewal does not depend on how many leases one call is about.
func TestBatchesRenewAsSingleCalls(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 2))
		leases := make([]store.Lease, 1+random.IntN(12))
		for i := range leases {
			leases[i] = store.Lease{Name: fmt.Sprint("lock", i), Owner: fmt.Sprint("o", i), TTL: time.Duration(1+random.IntN(3)) * time.Minute, Require: store.Class(random.IntN(2)) * store.CrashSafe}
		}
		nodes := 1 + random.IntN(5)
		says := make([]map[string]Reply, nodes)
		full, apart := random.IntN(4*nodes), random.IntN(3*nodes)
		for n := range says {
			says[n] = map[string]Reply{}
			for _, r := range leases {
				says[n][r.Name] = []Reply{
					{Kind: quorum.Yes, Report: store.NodeOutcome{Outcome: store.Granted}},
					{Kind: quorum.Yes, Report: store.NodeOutcome{Outcome: store.Granted}},
					{Kind: quorum.Yes, Report: store.NodeOutcome{Outcome: store.Granted}},
					{Kind: quorum.No, Report: store.NodeOutcome{Outcome: store.Taken, Holder: store.Holder{Owner: "x"}, ExpiresIn: time.Second}},
					{Kind: quorum.Absent, Report: store.NodeOutcome{Outcome: store.Absent}},
					{Kind: quorum.Unsent, Report: store.NodeOutcome{Outcome: store.Refused}},
					{Kind: quorum.Unknown, Report: store.NodeOutcome{Outcome: store.TimedOut}},
				}[random.IntN(7)]
			}
		}
		var results, healed [2][]string
		for way := range results {
			k := &Driver[[]Question]{
				Encode:      func(q Question, _ []Question) []Question { return []Question{q} },
				NodeTimeout: func(time.Duration) time.Duration { return time.Hour },
				Clock:       clock.System(),
				Logger:      slog.New(slog.DiscardHandler),
			}
			if way == 1 {
				k.EncodeRenewals = func(leases []store.Lease, _ []Question) ([]Question, int) {
					var q []Question
					for len(q) < min(len(leases), 4) && leases[len(q)].TTL == leases[0].TTL && leases[len(q)].Require == leases[0].Require {
						q = append(q, Question{Op: quorum.Extend, Lease: leases[len(q)]})
					}
					return q, len(q)
				}
			}
			var all []*oracle
			for n := range says {
				o := &oracle{index: n, says: says[n], full: n == full, apart: n == apart}
				all = append(all, o)
				k.Nodes = append(k.Nodes, o)
			}
			for _, err := range k.Renew(t.Context(), leases) {
				text := fmt.Sprint(err)
				if apart < nodes { // the replies to single calls may arrive too late for the error
					text = fmt.Sprint(err == nil)
				}
				results[way] = append(results[way], text)
				var q *store.QuorumError
				outcomes[fmt.Sprint(err == nil, errors.As(err, &q), errors.Is(err, store.ErrNotHeld))]++
			}
			for _, o := range all {
				healed[way] = append(healed[way], o.healedLeases())
			}
		}
		if !slices.Equal(results[0], results[1]) {
			t.Fatalf("seed %d: the results of single calls:\n%q\nand of batches:\n%q\nwant the same", seed, results[0], results[1])
		}
		if !slices.Equal(healed[0], healed[1]) {
			t.Fatalf("seed %d: healed by single calls %q, by batches %q, want the same", seed, healed[0], healed[1])
		}
	}
	if len(outcomes) < 3 {
		t.Errorf("outcomes %v, want 3 different ones at least", outcomes)
	}
}
