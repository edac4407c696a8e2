package storetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/store"
)

// caught lists flaws, each with a check that must notice it and a text that the failure
// message must contain. A check that fails for another reason has not noticed the flaw.
var caught = []struct {
	flaw  flaw
	check string
	says  string
}{
	{"less than a quorum", "Caps", "not a majority"},
	{"no reach", "Caps", "is none of"},
	{"requirements are ignored", "Require", "acquire with"},
	{"no tokens", "Grant", "without a token"},
	{"tokens are too large", "Grant", "2^53"},
	{"tokens are not shown", "Grant", "inspect: token 0"},
	{"holders are forgotten", "Grant", "inspect: holder"},
	{"handles are apart", "Grant", "free, want it held"},
	{"two are granted", "Busy", "while somebody else holds it"},
	{"busy says nothing", "Busy", "want a *store.BusyError"},
	{"busy names nobody", "Busy", "busy: holder"},
	{"busy names the asker", "Busy", "busy: holder"},
	{"busy for no time", "Busy", "busy: expires in 0s"},
	{"refused attempts get it later", "Busy", "want it free"},
	{"asking again is refused", "Repeat", "by the owner again"},
	{"asking again draws a token", "Repeat", "as before"},
	{"asking again shrinks", "Repeat", "with a shorter TTL: expires in"},
	{"asking again does not extend", "Repeat", "with a longer TTL: expires in"},
	{"releases count", "Repeat", "want it free"},
	{"tokens repeat", "TokensRise", "after a release"},
	{"tokens start again after a release", "TokensRise", "after a release"},
	{"tokens start again after an expiry", "TokensRise", "after an expiry"},
	{"anybody releases", "ReleaseByOwnerOnly", "release by another owner"},
	{"every release succeeds", "ReleaseByOwnerOnly", "release by another owner"},
	{"a release of nothing succeeds", "ReleaseTwice", "nobody ever had"},
	{"every release succeeds", "ReleaseTwice", "nobody ever had"},
	{"attempts are not told apart", "UndoSparesOthers", "granted nothing: got error <nil>"},
	{"joining goes unnoticed", "UndoSparesOthers", "another one has joined: got error <nil>"},
	{"an owner keeps its token", "LateReleaseSparesOthers", "the next grant of the same owner"},
	{"attempts are not told apart", "LateReleaseSparesOthers", "arrives late: got error <nil>"},
	{"renewals do nothing", "RenewExtends", "after the renewal: expires in"},
	{"renewals draw a token", "RenewExtends", "changed the token"},
	{"renewals shrink", "RenewNeverShrinks", "with a shorter TTL: expires in"},
	{"renewals create", "RenewNeverCreates", "renew of a lock nobody ever had"},
	{"renewals revive", "RenewNeverCreates", "renew after the expiry"},
	{"anybody renews", "RenewByOwnerOnly", "renew by another owner"},
	{"releases look, then delete", "ReleaseIsOneStep", "which came after"},
	{"renewals look, then write", "RenewIsOneStep", "which came after"},
	{"TTLs are cut to ten seconds", "TTLs", "a lease of 14.9s"},
	{"a batch is cut", "Crowd", "renewed together"},
	{"tokens are forgotten after 50 names", "Crowd", "others were used after"},
	{"lists end at 1,000", "Crowd", "misses"},
	{"renewals forget who joined", "JoinDuringRenewal", "joined during a renewal: got error <nil>"},
	{"calls write back what they read", "Beside", "want what the calls do one after the other"},
	{"a batch has one answer", "RenewBatch", "1 results, want one each"},
	{"a batch is out of order", "RenewBatch", "lease 1 of"},
	{"a batch stops at an error", "RenewBatch", "lease 2 of"},
	{"leases end early", "Expiry", "before the end of the validity"},
	{"leases never end", "Expiry", "in vain"},
	{"time stands still", "ExpiryCountsDown", "as inspected before"},
	{"lists show what is over", "ExpiryCountsDown", "a lease that is over"},
	{"anybody renews", "ExpiredHolder", "renew by the holder before"},
	{"anybody releases", "ExpiredHolder", "release by the holder before"},
	{"a release of nothing succeeds", "ExpiredHolder", "release after the expiry"},
	{"looking releases", "Inspect", "free, want it held"},
	{"a free lock has a holder", "Inspect", "inspect of a free lock"},
	{"what is known is undecided", "Inspect", "although all nodes answer"},
	{"lists are not sorted", "List", "comes after"},
	{"lists are cut", "List", "misses"},
	{"lists show what is over", "List", "shows"},
	{"prefixes are patterns", "ListPrefix", "shows"},
	{"prefixes ignore case", "ListPrefix", "shows"},
	{"names end at a NUL", "NamesOfAnyBytes", "misses"},
	{"names are text", "NamesOfAnyBytes", "misses"},
	{"names are cut", "NamesOfAnyBytes", "misses"},
	{"names ignore case", "NamesAlike", "is held by"},
	{"names are escaped, and no two differ", "NamesAlike", "acquire the free lock"},
	{"names ignore trailing space", "NamesAlike", "is held by"},
	{"owners ignore case", "OwnersAlike", "while somebody else holds it"},
	{"owners are patterns", "OwnersAlike", "while somebody else holds it"},
	{"owners are cut", "OwnersAlike", "while somebody else holds it"},
	{"holders are cut", "Meta", "inspect: holder"},
	{"meta has to be JSON", "Meta", "meta is not JSON"},
	{"long TTLs wrap round", "LongestTTL", "free, want it held"},
	{"a context that ends midway leaves the lease", "CancelledMidway", "in vain: nothing is left"},
	{"a cancelled attempt ends the lease", "CancelledAttemptSparesOthers", "want it held"},
	{"looks, then takes", "OneWinner", "contenders got the lock"},
	{"looks, then takes", "MutualExclusion", "holders at once"},
	{"tokens repeat", "MutualExclusion", "was granted after"},
	{"closing fails", "Close", "closed already"},
	{"close ends the leases", "CloseKeepsLeases", "want it held"},
	{"closing fails", "CloseDuringCalls", "closed already"},

	{"waits end without a token", "WaitFree", "without a token"},
	{"granted before it was asked for", "WaitFree", "granted by a request that left -"},
	{"granted after it was told", "WaitFree", "granted by a request that left 1h"},
	{"tokens repeat after a wait", "WaitFree", "granted token"},
	{"a free lock goes to new requests", "WaitFree", "in vain: wait for a free lock"},
	{"the last in the queue comes first", "WaitInOrder", "while others come first"},
	{"two are granted", "WaitInOrder", "while others come first"},
	{"a free lock goes to new requests", "WaitInOrder", "in vain: a waiter gets the lock"},
	{"handing on keeps the token", "WaitInOrder", "granted token"},
	{"handing on forgets the holder", "WaitInOrder", "inspect: holder"},
	{"handed leases end early", "WaitInOrder", "gets the lock that was released: expires in"},
	{"granted before it was asked for", "WaitInOrder", "granted by a request that left -"},
	{"released locks go to new requests", "WaitAndTry", "before a waiter"},
	{"waits that give up keep their place", "WaitGivenUp", "in vain: a waiter in the middle of the queue has given up"},
	{"waits that give up return busy", "WaitGivenUp", "a waiter in the middle of the queue gives up: got"},
	{"waits that give up keep their place", "WaitGivenUpByAll", "in vain: nobody is in the queue"},
	{"waits that give up keep what they were handed", "WaitGivenUpByAll", "in vain: nothing is left of a wait that was given up"},
	{"every release succeeds", "WaitReleased", "release by an owner that waited"},
	{"waits that give up keep their place", "WaitReleased", "in vain: the next one gets the lock"},
	{"expired locks go to new requests", "WaitForExpiry", "in vain: the first in the queue gets a lock whose lease expired"},
	{"leases end early", "WaitForExpiry", "before the end of the validity"},
	{"leases never end", "WaitForExpiry", "in vain: the first in the queue gets a lock whose lease expired"},
	{"tokens start again after an expiry", "WaitForExpiry", "after an expiry"},
	{"waiters are told nothing", "WaitReasons", "in vain: a waiter gets a reason to wait"},
	{"places are not refreshed", "WaitKeepsItsPlace", "has lost its place"},
	{"grants count from when they are told", "WaitSince", "and expires in"},
	{"positions stand still", "WaitReasons", "number 1 in the queue got the reason"},
	{"positions never change", "WaitReasons", "in vain: a waiter gets its new position"},
	{"waiters are told of themselves", "WaitReasons", "reason: holder"},
	{"locks are held from when they were asked for", "WaitHeldFor", "held for 1h"},
	{"the queue is not shown", "WaitShown", "in vain: all waiters are shown"},
	{"the queue is shown backwards", "WaitShown", "in vain: all waiters are shown"},
	{"the holder is shown in the queue", "WaitShown", "in vain: all waiters are shown"},
	{"places have no description", "WaitShown", "place in the queue: holder"},
	{"places never end", "WaitShown", "place in the queue: expires in"},
	{"lists show the queue", "WaitShown", "list of a lock that is waited for"},
	{"two are granted", "WaitMany", "holders at once"},
	{"handing on keeps the token", "WaitMany", "was granted after"},
	{"two are granted", "WaitComeAndGo", "holders at once"},
	{"handing on keeps the token", "WaitComeAndGo", "was granted after"},
	{"waits that give up keep their place", "WaitComeAndGo", "come and go"},
	{"waits that give up keep what they were handed", "WaitComeAndGo", "come and go"},
	{"an ended context is not looked at", "WaitEndedContext", "wait on an ended context: got error <nil>"},
	{"waits that give up return busy", "WaitEndedContext", "wait on an ended context: got error"},
	{"waits do not end with the store", "WaitClosed", "by a store that is closed"},

	{"the limit is not kept", "KindLimit", "while somebody else holds it"},
	{"one holder is shown", "KindLimit", "want 3 holders"},
	{"a release ends all leases", "KindLimit", "one permit was released"},
	{"a batch renews one lease of a lock", "KindLimit", "renewed with others of one lock"},
	{"an expired lease frees one permit", "KindDeadReader", "in vain: a waiter gets two permits"},
	{"the limit is not kept", "KindContention", "holders at once"},
	{"slots repeat", "KindContention", "has two holders"},
	{"tokens repeat", "KindContention", "belongs to two grants"},
	{"weights do not count", "KindWeights", "while somebody else holds it"},
	{"later requests barge", "KindWeights", "while somebody else holds it"},
	{"waiters are taken for holders", "KindWeights", "behind a waiter"},
	{"holders are taken for waiters", "KindWeights", "want a holder"},
	{"tokens repeat", "KindTokens", "belongs to two grants"},
	{"weights do not count", "KindReadWrite", "while somebody else holds it"},
	{"a release ends all leases", "KindReadWrite", "while somebody else holds it"},
	{"readers have the writer's token", "KindReadWrite", "after the writer's"},
	{"readers have tokens of their own", "KindReadWrite", "beside a reader with"},
	{"later requests barge", "KindWriterWaits", "while somebody else holds it"},
	{"waiters are taken for holders", "KindWriterWaits", "behind a waiter"},
	{"readers have the writer's token", "KindWriterWaits", "after the writer's"},
	{"readers have tokens of their own", "KindWriterWaits", "beside a reader with"},
	{"a dead holder frees all", "KindDeadReader", "the other reader"},
	{"kinds are mixed", "KindMismatch", "want a *store.KindError"},
	{"kinds are not named", "KindMismatch", "want a *store.KindError"},
	{"a downgrade keeps the token", "Downgrade", "more than the writer has"},
	{"a downgrade lets a writer in between", "Downgrade", "downgrade"},
	{"a downgrade renews a broken lease", "Downgrade", "broken"},
	{"a resize does nothing", "Resize", "in vain: resize: a wait for the earlier number ends"},
	{"a resize ends leases", "Resize", "renew of a lease"},
	{"a resize from any number", "Resize", "want a *store.KindError"},
	{"one holder of a mutex is shown", "Resize", "want both holders of a mutex"},

	{"broken leases are renewed", "BreakStopsRenewals", "renew of a lease that was broken"},
	{"every break is at once", "BreakStopsRenewals", "a lease that was broken: expires in 0s"},
	{"a broken lease is granted again", "BreakStopsRenewals", "asks again for a lease that was broken"},
	{"tokens start again after a break", "BreakNow", "after a lease was broken"},
	{"breaks are not told of", "BreakNotified", "in vain: the holder's store notifies it that its lease was broken"},
	{"broken leases are renewed", "BreakExpiry", "renew of a lease that was broken"},
	{"broken leases last", "BreakExpiry", "in vain: a lease that was broken ends"},
	{"broken leases come back", "BreakNow", "late request to acquire"},
	{"broken leases are renewed", "BreakNow", "in vain: a waiter gets a lock whose lease was broken"},
	{"any token will do", "BreakToken", "got error <nil>"},
	{"breaks of nothing succeed", "BreakToken", "got error <nil>"},
	{"long notes are cut", "BreakNote", "inspect of a lease that was broken"},
	{"breaks are not noted", "BreakNote", "inspect of a lease that was broken"},
	{"the last note is shown", "BreakNote", "inspect after a second request"},
	{"broken leases are renewed", "BreakOfKinds", "renew of a lease that was broken"},
	{"every break is at once", "BreakOfKinds", "a lease that was broken: expires in 0s"},
	{"a break ends all leases", "BreakOfKinds", "a lease that was broken: inspect"},
	{"broken leases come back", "BreakOfKinds", "late request to acquire"},

	{"a rejoin comes first", "Rejoin", "in vain: the first in the queue gets the lock that was released"},
	{"a rejoin releases nothing", "Rejoin", "in vain: the first in the queue gets the lock that was released"},
	{"a rejoin waits behind nobody", "RejoinFree", "rejoin of a lock that nobody waits for: queued true"},
	{"an abandoned place stays", "RejoinGivenUp", "in vain: a place that was given up is gone"},
	{"an unclaimed place is granted nothing", "RejoinGranted", "free, want it held"},
	{"a rejoin without the lock takes a place", "RejoinByOwnerOnly", "a place was taken, want none"},
	{"an unclaimed place outlives the store", "RejoinClosed", "in vain: nobody is in the queue after the store was closed"},
}

// ordinary has the checks of a store that keeps only mutexes, ofKinds those of the other
// kinds, and all also those of a store in which a release can rejoin the queue.
var (
	ordinary = slices.Concat(checks, waitChecks)
	ofKinds  = slices.Concat(kindChecks, changeChecks, breakChecks, notifyChecks, breakKindChecks)
	all      = slices.Concat(ordinary, ofKinds, rejoinChecks)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shortTTL is the TTL of the leases whose end a check waits for.
const shortTTL = 100 * time.Millisecond

func TestSuiteCatchesBrokenStores(t *testing.T) {
	for _, c := range caught {
		t.Run(c.check+"/"+string(c.flaw), func(t *testing.T) {
			t.Parallel() // it mostly waits
			i := slices.IndexFunc(all, func(k check) bool { return k.name == c.check })
			if i < 0 {
				t.Fatalf("there is no check %s", c.check)
			}
			var failures []string
			// If the machine stands still while a short lease is inspected, a flaw can go
			// unnoticed, so each further try has four times as long.
			for _, slower := range []time.Duration{1, 4, 16} {
				failures = try(t.Context(), all[i], c.flaw, 2, slower*time.Second, slower*shortTTL)
				if slices.ContainsFunc(failures, func(f string) bool { return strings.Contains(f, c.says) }) {
					return
				}
			}
			t.Errorf("%s of a store with the flaw %q failed with %q, want a failure that says %q", c.check, c.flaw, failures, c.says)
		})
	}
}

// A check that never fails proves nothing, so a flaw must be listed for each.
func TestSuiteHasNoIdleCheck(t *testing.T) {
	for _, k := range all {
		if !slices.ContainsFunc(caught, func(c struct {
			flaw        flaw
			check, says string
		}) bool {
			return c.check == k.name
		}) {
			t.Errorf("no flaw is listed for the check %s", k.name)
		}
	}
}

// sound lists stores that must pass. The first has no flaw, which shows that the checks notice
// the flaws and not the plain store. The others do what Caps and ErrUnsupported allow.
var sound = []struct {
	as      flaw
	handles int
}{
	{"", 1},
	{"has a maximum TTL", 2},
	{"rounds TTLs and has a minimum", 2},
}

func TestSuitePassesSoundStores(t *testing.T) {
	for _, s := range sound {
		for _, k := range ordinary {
			t.Run(fmt.Sprintf("%s/%s/handles=%d", k.name, s.as, s.handles), func(t *testing.T) {
				t.Parallel()
				for _, failure := range try(t.Context(), k, s.as, s.handles, 20*time.Second, shortTTL) {
					t.Error(failure)
				}
			})
		}
	}
	for _, k := range slices.Concat(ofKinds, rejoinChecks) {
		for handles := 1; handles <= 2; handles++ {
			t.Run(fmt.Sprintf("%s/handles=%d", k.name, handles), func(t *testing.T) {
				t.Parallel()
				for _, failure := range try(t.Context(), k, "", handles, 20*time.Second, shortTTL) {
					t.Error(failure)
				}
			})
		}
	}
}

// TestWaitIsOptional: a store that keeps no queue is not held to one.
func TestWaitIsOptional(t *testing.T) {
	if got := checksOf(store.New(queueless{&flawed{core: newCore()}})); len(got) != len(checks) {
		t.Errorf("%d checks for a store that keeps no queue, want %d", len(got), len(checks))
	}
	if got := checksOf(store.New(&flawed{core: newCore()})); len(got) != len(ordinary) {
		t.Errorf("%d checks for a store that keeps a queue, want %d", len(got), len(ordinary))
	}
	if got := checksOf(store.New(&manifold{shelf: newShelf()})); len(got) != len(checks)+len(waitChecks)+len(ofKinds) {
		t.Errorf("%d checks for a store that keeps every kind", len(got))
	}
}

type queueless struct{ *flawed }

func (s queueless) Caps() store.Caps {
	c := s.flawed.Caps()
	c.NoQueue = true
	return c
}

// try runs one check on a store with a flaw, and returns the failures.
func try(ctx context.Context, k check, f flaw, handles int, patience, shortTTL time.Duration) []string {
	pair := func() (first, second *store.Store) {
		c := newCore()
		first = store.New(&flawed{core: c, flaw: f})
		if f == "handles are apart" {
			c = newCore()
		}
		if handles == 2 {
			second = store.New(&flawed{core: c, flaw: f})
		}
		return first, second
	}
	if slices.ContainsFunc(ofKinds, func(c check) bool { return c.name == k.name }) {
		pair = func() (first, second *store.Store) {
			shelf := newShelf()
			if first = store.New(&manifold{shelf: shelf, flaw: f}); handles == 2 {
				second = store.New(&manifold{shelf: shelf, flaw: f})
			}
			return first, second
		}
	}
	if slices.ContainsFunc(rejoinChecks, func(c check) bool { return c.name == k.name }) {
		plain := pair
		pair = func() (first, second *store.Store) {
			if first, second = plain(); second != nil {
				second = newRejoining(second)
			}
			return newRejoining(first), second
		}
	}
	s := subject{reopen: pair, patience: patience, options: Options{ShortTTL: shortTTL}}
	s.first, s.second = pair()

	rec := &recorder{ctx: ctx}
	done := make(chan struct{})
	go func() { // Fatalf ends this goroutine
		defer close(done)
		defer rec.cleanUp()
		k.run(newTrial(rec, s))
	}()
	<-done
	return rec.failures
}

// recorder is a reporter that records failures.
type recorder struct {
	ctx      context.Context
	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) cleanUp() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
