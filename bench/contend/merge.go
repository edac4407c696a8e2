package contend

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Figures are the results of one measurement. A hand-off is a turn of another process
// than the one before. The number of turns misleads, because a process that polls often
// takes the lock again that it has just released.
type Figures struct {
	Processes  int
	Goroutines int // of each
	Window     time.Duration
	Turns      int // that began within the window
	HandOffs   int
	// HandOff is the time from the start of a release until the next process has the
	// lock.
	HandOff Quantiles
	// Wait is the time from asking to having the lock; Max includes waits that failed.
	Wait Quantiles
	// Held is the length of turns.
	Held    Quantiles
	Starved int // processes without a turn
	// Fairness is Jain's index of the turns of each process: 1 if all had the same
	// number, 1/n if one had all.
	Fairness float64
	// LongestRun is the largest number of turns that one process had in a row while
	// others waited, and LongestStay the longest time.
	LongestRun  int
	LongestStay time.Duration
	// Overlaps counts turns that began while another holder had the lock: the lock did not
	// exclude them.
	Overlaps int    `json:",omitempty"`
	Overlap  string `json:",omitempty"` // the first of them
	GaveUp   int    `json:",omitempty"` // locks that were asked for anew, as the implementation waits no longer
	Errors   int    `json:",omitempty"` // locks and unlocks that failed, within the window or not
	Failed   string `json:",omitempty"` // the first of them
	Use
}

// Quantiles of a distribution of durations.
type Quantiles struct{ P50, P99, Max time.Duration }

// Use is the cost within the window.
type Use struct {
	ClientCPU time.Duration // all processes together
	ServerCPU time.Duration // all servers together
	Sent      float64       // what clients sent to all servers together; with Redis, without KeptAlive
	KeptAlive float64       // PINGs, which keep connections alive
	Commands  float64       // what servers executed, those inside scripts included; Redis only
}

// turn is a Hold and its process.
type turn struct {
	Hold
	process int
}

// Merge computes the figures of a window of time. Turns outside it count only for
// overlaps. As many as limit can have the lock at once; if these are several, the lock is not
// handed from one to the next, and HandOff is empty.
func Merge(logs []Log, processes, limit int, from, to int64) Figures {
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
	f.Overlaps, f.Overlap = overlaps(turns, limit)

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
			if limit == 1 {
				handOffs = append(handOffs, time.Duration(t.Got-turns[i-1].Freed))
			}
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

// inVain is the longest wait that had not ended within the window.
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

// overlaps counts turns that began before as many others as the limit had ended. The turns
// must be in the order in which they began.
func overlaps(turns []turn, limit int) (n int, first string) {
	var inside []turn // those that end last so far, at most limit, in the order of their ends
	for _, t := range turns {
		if len(inside) == limit && t.Got < inside[0].Freed {
			if n++; n == 1 {
				next := inside[0]
				first = fmt.Sprintf("process %d got the lock %v after process %d did, %s", t.process, time.Duration(t.Got-next.Got), next.process, before(t.Got, next.Freed))
			}
		}
		at, _ := slices.BinarySearchFunc(inside, t, func(a, b turn) int { return cmp.Compare(a.Freed, b.Freed) })
		if inside = slices.Insert(inside, at, t); len(inside) > limit {
			inside = inside[1:]
		}
	}
	return n, first
}

func before(got, freed int64) string {
	if freed == Never {
		return "which never released it"
	}
	return fmt.Sprintf("%v before that began to release it", time.Duration(freed-got))
}

// jain returns Jain's index of fairness, 0 for nothing at all.
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
