package sim

import (
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Result is the outcome of a run.
type Result struct {
	// Violations, at most one unless several show at the same instant.
	Violations []Violation
	// Digest of the whole history.
	Digest uint64
	// History in lines for people, if the caller asked for it.
	History []string
	// Simulated is how long the run lasted, in simulated time.
	Simulated time.Duration
	Tally     Tally
}

// Run plays a script. It blocks until the run is over, which takes some
// milliseconds of real time, and may be called concurrently.
func Run(t *testing.T, s Script, sw Switches, keepHistory bool) (r Result) {
	t.Helper()
	return run(t, s, sw, keepHistory, nil)
}

// run plays a script in a world that tamper may change, for tests of the judge: it must find
// a fault that is hidden there.
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
		time.Sleep(time.Until(time.Unix(0, int64(midnight))))
		w := newWorld(s, sw, slog.New(slog.DiscardHandler))
		judge := newJudge(w)
		w.judge = judge
		w.planFaults()
		w.hist.keep = keepHistory
		if tamper != nil {
			tamper(w)
		}
		w.drive()
		if !w.findings.gaveUp {
			judge.leftovers.atTheEnd()
		}
		w.leave()
		w.findings.tally.Events = w.events
		r = Result{Violations: w.findings.wrongs, Digest: w.hist.digest, History: w.hist.lines, Simulated: w.now(), Tally: w.findings.tally}
	})
	return r
}

// leave waits for everything that ends by itself. The bubble finds the goroutines that do
// not.
func (w *world) leave() {
	for c := range w.everybody {
		c.end()
		if c.store != nil {
			c.store.Close()
		}
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
