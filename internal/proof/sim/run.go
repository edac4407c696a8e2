package sim

import (
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
)

// Switches take mechanisms away that are not in the production code: those of
// the nodes, and of whoever operates them.
type Switches struct {
	Rules modelnode.Rules
	// NoQuarantine: a node that lost data takes part at once.
	NoQuarantine bool
	// ShortQuarantine: it stays out for half the longest TTL.
	ShortQuarantine bool
	// ErrorIsNo: a node's error counts as its saying that the lease is gone.
	ErrorIsNo bool
	// AnyList: nodes do not look which list of nodes a client has.
	AnyList bool
	// NoClockWatch: clients do not look whether nodes' clocks jump.
	NoClockWatch bool
	// CountFromPush: a lock that was handed over counts from when that is heard.
	CountFromPush bool
	// NoBootClock: the clients' clock stands still while they are suspended.
	NoBootClock bool
}

// Shipped has every mechanism in place.
func Shipped() Switches { return Switches{Rules: modelnode.Shipped()} }

// Result is what came of a run.
type Result struct {
	// Violations, at most one unless several show at the same instant.
	Violations []Violation
	// Digest of the whole history.
	Digest uint64
	// History in lines for people, if it was asked for.
	History []string
	// Simulated is how long the run lasted, in simulated time.
	Simulated time.Duration
	Tally     Tally
}

// Tally counts what happened, to see that a run reaches what it should.
type Tally struct {
	Events     int // outside of the clients' code
	Grants     int // leases that workers got
	Refusals   int // attempts, or waits, that ended without one
	Losses     int // leases that ended before they were released
	Told       int // of these, by a holder that ran all the time
	Writes     int // to the resource, under a lease believed in
	Releases   int // that were said to have worked
	Extensions int // asked for by holders
	Renewals   int // done by nodes
	Confirms   int // done by nodes
	Buried     int // acquires that came after their release
	Heals      int // nodes that were given a lease again
	Handed     int // locks that nodes gave to the next in line
	Passed     int // leases that were passed on within a client
	Returned   int // places in line that were taken with a release, node by node
}

// Add takes in what happened in another run.
func (t *Tally) Add(u Tally) {
	for i, n := range u.fields() {
		*t.fields()[i] += *n
	}
}

func (t *Tally) fields() [15]*int {
	return [...]*int{
		&t.Events, &t.Grants, &t.Refusals, &t.Losses, &t.Told, &t.Writes, &t.Releases, &t.Extensions,
		&t.Renewals, &t.Confirms, &t.Buried, &t.Heals, &t.Handed, &t.Passed, &t.Returned,
	}
}

// Run plays a script. It blocks until the run is over, which takes some
// milliseconds of real time, and may be called concurrently.
func Run(t *testing.T, s Script, sw Switches, keepHistory bool) (r Result) {
	t.Helper()
	return run(t, s, sw, keepHistory, nil)
}

// run plays a script in a world that was tampered with: a judge that nothing
// can be hidden from has to be shown something hidden.
func run(t *testing.T, s Script, sw Switches, keepHistory bool, tamper func(*world)) (r Result) {
	t.Helper()
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if e := recover(); e != nil {
			if err, ok := e.(error); !ok || !strings.Contains(err.Error(), "deadlock") {
				panic(e)
			}
			r.Violations = append(r.Violations, Violation{Rule: Orphan, Text: "goroutines were left behind:\n" + bubbled()})
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(s, sw, slog.New(slog.DiscardHandler))
		w.hist.keep = keepHistory
		if tamper != nil {
			tamper(w)
		}
		w.drive()
		if !w.gaveUp {
			w.judge.atTheEnd()
		}
		w.leave()
		w.judge.tally.Events = w.events
		r = Result{Violations: w.judge.wrongs, Digest: w.hist.digest, History: w.hist.lines, Simulated: w.now(), Tally: w.judge.tally}
	})
	return r
}

// leave lets everything end that ends by itself. Goroutines that do not are
// found by the bubble.
func (w *world) leave() {
	for _, c := range w.clients {
		c.end()
	}
	time.Sleep(10 * time.Second)
	synctest.Wait()
}

// bubbled are the stacks of goroutines in bubbles.
func bubbled() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var s []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		if head, _, _ := strings.Cut(g, "\n"); strings.Contains(head, "synctest bubble") {
			s = append(s, g)
		}
	}
	return strings.Join(s, "\n\n")
}
