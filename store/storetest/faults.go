package storetest

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Link is what a store's requests and their answers pass through, such as a proxy in front of
// its server. Each method but Cut lasts until another one is called.
type Link interface {
	// Pass lets everything through, and delivers what was held.
	Pass()
	// HoldRequests holds requests back. They are delivered later, even if the client is gone.
	HoldRequests()
	// HoldReplies delivers requests, and holds the answers back.
	HoldReplies()
	// DropReplies delivers requests, and loses the answers.
	DropReplies()
	// Blackhole loses requests and answers, without a sign of it.
	Blackhole()
	// Cut breaks all connections, loses what is held, and returns how many there were.
	Cut() int
}

// Refuser is a Link that can have the engine refuse what is asked, with an error that says so.
type Refuser interface {
	Link
	// Refuse has every request refused, or at least those that change something, until Pass.
	Refuse()
}

// RunFaults tests what a store does if the way to its engine has faults: each verb meets
// each fault. Run tests the store without any. open returns a store and the link that
// it uses; Options.Second returns stores that the faults do not concern, and must be set.
//
// Whatever goes wrong, the result is right or says that it is not known; nothing of a
// call that failed is left, and nothing of it takes effect later; calling again gives what the
// first call would have given.
//
// RunFaults blocks for about a second: all verbs meet a fault at once, and all faults run in
// parallel.
func RunFaults(t *testing.T, open func(t *testing.T) (*store.Store, Link), o Options) {
	for _, f := range faults {
		t.Run(f.what, func(t *testing.T) {
			run := func(t *testing.T) {
				first, link := open(t)
				t.Cleanup(func() { first.Close() })
				if _, ok := link.(Refuser); f.refuses && !ok {
					t.Skip("this link cannot refuse")
				}
				second := o.Second(t)
				t.Cleanup(func() { second.Close() })
				s := subject{first: first, second: second, options: o, patience: time.Minute}
				meet(t, s, link, f)
			}
			if o.Virtual {
				synctest.Test(t, run)
				return
			}
			t.Parallel()
			run(t)
		})
	}
}

// fault is what a call meets.
type fault struct {
	what string
	// begin is called before the calls are made.
	begin func(Link)
	// gone is set if the context of the calls has ended before, cancels if it ends while they are under
	// way, and refuses if the engine says no. Otherwise connections are cut while they are under way:
	// then each call goes on by itself, and succeeds.
	gone, cancels, refuses bool
}

var faults = []fault{
	{what: "context ended before", gone: true},
	{what: "context ends meanwhile", begin: Link.HoldReplies, cancels: true},
	{what: "requests lost", begin: Link.Blackhole, cancels: true},
	{what: "answers lost", begin: Link.DropReplies, cancels: true},
	{what: "requests late", begin: Link.HoldRequests, cancels: true},
	{what: "cut before the request", begin: Link.HoldRequests},
	{what: "cut before the answer", begin: Link.HoldReplies},
	{what: "refused", refuses: true},
}

// under is how long calls are under way when a fault goes on or their context ends. If a busy
// machine has not sent them by then, they meet less, and pass as well.
const under = 150 * time.Millisecond

// meet has all verbs meet a fault at once.
func meet(r reporter, s subject, link Link, f fault) {
	var all []*encounter
	for _, v := range verbs {
		if v.offered == nil || v.offered(s.first.Caps()) {
			e := &encounter{trial: newTrial(prefixed{r, v.name + ": "}, s), fault: f}
			var prepared sync.WaitGroup
			prepared.Go(func() { // Fatalf ends this goroutine
				v.prepare(e)
				all = append(all, e)
			})
			prepared.Wait()
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*s.patience)
	defer cancel()
	switch {
	case f.gone:
		cancel()
	case f.refuses:
		link.(Refuser).Refuse()
	default:
		f.begin(link)
	}
	var calls, judges sync.WaitGroup
	for _, e := range all {
		calls.Go(func() { e.err = e.call(ctx) })
	}
	switch {
	case f.refuses:
		calls.Wait()
	case f.cancels:
		time.Sleep(under)
		cancel()
		calls.Wait()
	case !f.gone:
		time.Sleep(under)
		link.Cut()
	}
	link.Pass()
	for _, e := range all {
		if e.free != nil {
			e.free()
		}
	}
	calls.Wait()
	for _, e := range all {
		judges.Go(func() { // Fatalf ends this goroutine
			e.again("a call after the fault", func() error {
				_, err := e.first.Inspect(e.Context(), e.name())
				return err
			})
			e.judge()
		})
	}
	judges.Wait()
}

// prefixed is a reporter that says which verb failed. It may be used by any goroutine.
type prefixed struct {
	reporter
	prefix string
}

func (p prefixed) Errorf(format string, args ...any) {
	p.Helper()
	p.reporter.Errorf("%s"+format, append([]any{p.prefix}, args...)...)
}

func (p prefixed) Fatalf(format string, args ...any) {
	p.Helper()
	p.Errorf(format, args...)
	runtime.Goexit()
}
