package contend

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Figures are the results of one measurement. A hand-off is a turn of another
// process than the one before: turns as such mislead, as who polls takes the
// lock again that it has just given back.
type Figures struct {
	Processes  int
	Goroutines int // of each
	Window     time.Duration
	Turns      int // that began within the window
	HandOffs   int
	// HandOff is the time from the beginning of a release to the next process
	// having the lock.
	HandOff Quantiles
	// Wait is the time from asking to having; Max knows those who waited in vain.
	Wait Quantiles
	// Held is how long turns took.
	Held    Quantiles
	Starved int // processes without a turn
	// Fairness is Jain's index of turns for each process: 1 when all had the
	// same, 1/n when one had all.
	Fairness float64
	// LongestRun is how many turns one process had in a row at most, and
	// LongestStay how long, while others waited.
	LongestRun  int
	LongestStay time.Duration
	// Overlaps are turns that began while somebody else had the lock: it was no
	// lock then.
	Overlaps int    `json:",omitempty"`
	Overlap  string `json:",omitempty"` // the first of them
	GaveUp   int    `json:",omitempty"` // locks that were asked for anew, as the implementation waits no longer
	Errors   int    `json:",omitempty"` // locks and unlocks that failed, within the window or not
	Failed   string `json:",omitempty"` // the first of them
	Use
}

// Quantiles of a distribution of durations.
type Quantiles struct{ P50, P99, Max time.Duration }

// Use is what it took, in the window.
type Use struct {
	ClientCPU time.Duration // all processes together
	ServerCPU time.Duration // all servers together
	Sent      float64       // what clients sent to all servers together; with Redis, without KeptAlive
	KeptAlive float64       // PINGs, which keep connections alive
	Commands  float64       // what servers executed, those inside scripts included; Redis only
}

// turn is a hold with whose it was.
type turn struct {
	Hold
	process int
}

// Merge finds out what the processes did from one point in time to another.
// Turns before and after count for what they overlap only.
func Merge(logs []Log, processes int, from, to int64) Figures {
	f := Figures{Processes: processes, Window: time.Duration(to - from)}
	if processes > 0 {
		f.Goroutines = len(logs) / processes
	}
	var turns []turn
	for _, l := range logs {
		for _, h := range l.Holds {
			turns = append(turns, turn{h, l.Process})
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.Got, b.Got) })
	f.Overlaps, f.Overlap = overlaps(turns)

	perProcess := make([]int, processes)
	var handOffs, waits, held []time.Duration
	run, runFrom := 0, from
	for i, t := range turns {
		if t.Got < from || t.Got >= to {
			continue
		}
		f.Turns++
		perProcess[t.process]++
		waits = append(waits, time.Duration(t.Got-t.Asked))
		if t.Freed != Never {
			held = append(held, time.Duration(t.Freed-t.Got))
		}
		if i > 0 && turns[i-1].process != t.process {
			f.HandOffs++
			handOffs = append(handOffs, time.Duration(t.Got-turns[i-1].Freed))
			run, runFrom = 0, t.Got
		}
		run++
		f.LongestRun = max(f.LongestRun, run)
		f.LongestStay = max(f.LongestStay, time.Duration(min(t.Freed, to)-runFrom))
	}
	f.HandOff, f.Wait, f.Held = quantiles(handOffs), quantiles(waits), quantiles(held)
	f.Wait.Max = max(f.Wait.Max, inVain(logs, turns, to))
	for _, n := range perProcess {
		if n == 0 {
			f.Starved++
		}
	}
	f.Fairness = jain(perProcess)
	return f
}

// inVain is the longest wait of those who were still waiting at the end, and of
// those whose turn came after it.
func inVain(logs []Log, turns []turn, to int64) time.Duration {
	var longest time.Duration
	for _, l := range logs {
		if l.Asking != 0 {
			longest = max(longest, time.Duration(to-l.Asking))
		}
	}
	for _, t := range turns {
		if t.Got >= to {
			longest = max(longest, time.Duration(to-t.Asked))
		}
	}
	return longest
}

// overlaps counts turns that began while another was not over. The turns are in
// the order in which they began.
func overlaps(turns []turn) (n int, first string) {
	if len(turns) == 0 {
		return 0, ""
	}
	last := turns[0] // the one that ends last so far
	for _, t := range turns[1:] {
		if t.Got < last.Freed {
			if n++; n == 1 {
				first = fmt.Sprintf("process %d got the lock %v after process %d did, %s", t.process, time.Duration(t.Got-last.Got), last.process, before(t.Got, last.Freed))
			}
		}
		if t.Freed > last.Freed {
			last = t
		}
	}
	return n, first
}

func before(got, freed int64) string {
	if freed == Never {
		return "which never gave it back"
	}
	return fmt.Sprintf("%v before that began to give it back", time.Duration(freed-got))
}

// jain is Jain's index of fairness. That of nothing at all is 0.
func jain(shares []int) float64 {
	var sum, squares float64
	for _, n := range shares {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}

func quantiles(all []time.Duration) Quantiles {
	if len(all) == 0 {
		return Quantiles{}
	}
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))] }
	return Quantiles{P50: at(0.5), P99: at(0.99), Max: all[len(all)-1]}
}
