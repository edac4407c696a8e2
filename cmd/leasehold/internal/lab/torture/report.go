package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/history"
)

// Report is the verdict of a run, and what led to it.
type Report struct {
	Config
	history.Findings
	Took         time.Duration // the faults
	Kills, Stops int
	Faults       int      // others, by Config.Disturb
	Hung         []string // workers that did not come to an end, in words
	CutShort     bool     // ctx ended before For was over
	Plot         string   // file
	Pictures     []string // files, of violations

	h *history.History
}

// OK reports whether all promises were kept, as far as can be seen.
func (r *Report) OK() bool { return len(r.Violations) == 0 && len(r.Hung) == 0 }

func (r *run) report(ctx context.Context, hung []string) (*Report, error) {
	var err error
	resource := filepath.Join(r.Dir, "resource.jsonl")
	if r.h.Writes, err = history.ReadResource(resource); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if err := r.steady(); err != nil {
		return nil, err
	}
	rep := &Report{
		Config: r.Config, h: r.h, Hung: hung, CutShort: ctx.Err() != nil,
		Findings: r.h.Check(history.Limits{Calm: calm(r.TTL), Told: told(r.TTL), Patience: 20 * time.Second, Idle: history.Idleness{
			Bound: r.Idle, TTL: r.TTL, Nodes: r.Nodes, Grace: grace,
		}}),
		Took: time.Since(r.began), Kills: int(r.kills.Load()), Stops: int(r.stops.Load()),
		Plot: filepath.Join(r.Dir, "history.svg"),
	}
	rep.Faults = len(r.h.Faults) - rep.Kills - rep.Stops
	if err := rep.save(); err != nil {
		return nil, err
	}
	return rep, nil
}

// save writes the files that people look at.
func (r *Report) save() error {
	err := create(r.Plot, func(w io.Writer) error { return r.h.Plot(w, r.Violations) })
	if err != nil {
		return err
	}
	err = create(filepath.Join(r.Dir, "faults.jsonl"), func(w io.Writer) error {
		for _, f := range r.h.Faults {
			if err := json.NewEncoder(w).Encode(f); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, v := range r.Violations {
		if !v.HasPicture() {
			continue
		}
		path := filepath.Join(r.Dir, fmt.Sprintf("%s-%d.html", strings.ReplaceAll(v.Check, " ", "-"), v.Lock+1))
		if err := create(path, func(w io.Writer) error { return r.h.Picture(w, v) }); err != nil {
			return err
		}
		r.Pictures = append(r.Pictures, path)
	}
	return nil
}

func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// Print writes all there is to say, the verdict last.
func (r *Report) Print(w io.Writer) {
	const most = 3 // of each check to tell in full; one fault often shows many times
	told := map[string]int{}
	for _, v := range r.Violations {
		if told[v.Check]++; told[v.Check] > most {
			continue
		}
		fmt.Fprintf(w, "VIOLATION of %s, lock %q%s: %s\n", v.Check, r.Locks[v.Lock], r.kindOf(v.Lock), v.What)
		for _, a := range v.Attempts {
			fmt.Fprintf(w, "    %s\n", r.h.Tell(a))
		}
		if around := r.h.Around(v); len(around) > 0 {
			fmt.Fprintf(w, "  at that time:\n    %s\n", strings.Join(around, "\n    "))
		}
		fmt.Fprintln(w)
	}
	for _, check := range slices.Sorted(maps.Keys(told)) {
		if n := told[check]; n > most {
			fmt.Fprintf(w, "... and %d more of %s\n", n-most, check)
		}
	}
	for _, s := range r.Hung {
		fmt.Fprintf(w, "VIOLATION: %s\n", s)
	}
	for _, s := range r.Undecided {
		fmt.Fprintf(w, "undecided: %s\n", s)
	}
	fmt.Fprintf(w, "history  %s\n", r.Dir)
	fmt.Fprintf(w, "plot     %s\n", r.Plot)
	for _, p := range r.Pictures {
		fmt.Fprintf(w, "picture  %s\n", p)
	}
	fmt.Fprintf(w, "seed     %d\n", r.Seed)
	fmt.Fprintln(w, r.Verdict())
}

// kindOf says what kind of lock one is, in words that follow its name, if it can be
// another than a mutex.
func (r *Report) kindOf(lock int) string {
	if len(r.Kinds) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%v)", r.Kinds[lock])
}

// Word is the report in one word: "pass", "fail", or, where nothing was ever
// granted because the run was cut short, "none".
func (r *Report) Word() string {
	switch {
	case !r.OK():
		return "fail"
	case r.Granted == 0:
		return "none"
	}
	return "pass"
}

// Verdict is the report in one line, which begins with the word in capitals.
func (r *Report) Verdict() string {
	s := fmt.Sprintf("%s: %s in %v: %s of %s to %s, %s lost, %s of unknown outcome, %s; processes stopped %s, killed %s",
		strings.ToUpper(r.Word()), count(len(r.Violations)+len(r.Hung), "violation"), r.Took.Round(100*time.Millisecond),
		count(r.Granted, "grant"), count(len(r.Locks), "lock"), plural(r.Procs, "process", "processes"),
		count(r.Lost, "lease"), count(r.Unknown, "attempt"), count(r.LateWrites, "late write"), count(r.Stops, "time"), count(r.Kills, "time"))
	if r.Faults > 0 {
		s += fmt.Sprintf(", %s", count(r.Faults, "other fault"))
	}
	if r.Recovered > 0 {
		s += fmt.Sprintf("; after the last, every lock was granted again within %v", r.Recovered.Round(time.Millisecond))
	}
	s += fmt.Sprintf("; nobody waited longer than %v for a lock that was available", r.Findings.Idle.Round(time.Millisecond))
	if r.CutShort {
		s += "; cut short"
	}
	if n := len(r.Undecided); n > 0 {
		s += fmt.Sprintf("; %s undecided", count(n, "check"))
	}
	return s
}

func count(n int, what string) string { return plural(n, what, what+"s") }

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
