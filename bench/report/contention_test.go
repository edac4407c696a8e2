package report

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/bench/contend"
	"github.com/leasehold-dev/leasehold/bench/locks"
)

// contestOf returns a measurement of one second with that many hand-offs.
func contestOf(processes, goroutines, handOffs int) contend.Figures {
	return contend.Figures{
		Processes: processes, Goroutines: goroutines, Window: time.Second, Turns: 2 * handOffs, HandOffs: handOffs,
		HandOff: contend.Quantiles{P50: 100 * time.Microsecond, P99: time.Millisecond}, Wait: contend.Quantiles{Max: 20 * time.Millisecond},
		Fairness: 0.995, LongestRun: 64, LongestStay: 3 * time.Millisecond,
		Use: contend.Use{ClientCPU: 5 * time.Millisecond, ServerCPU: 300 * time.Millisecond, Sent: 2 * float64(handOffs), Commands: 5 * float64(handOffs)},
	}
}

// contentious returns a run that reaches every aim.
func contentious() *Run {
	r := &Run{Machine: ThisMachine(), Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Rounds: 3, For: time.Second, RoundTrip: 2 * time.Millisecond}
	add := func(scenario string, k locks.Kind, round int, f contend.Figures) {
		r.Contests = append(r.Contests, Contest{scenario, k.Name, round, f})
	}
	for round := range 3 {
		for _, k := range locks.Contended {
			ours := k.Role == locks.Ours
			for _, n := range []int{2, 16, 128} {
				handOffs := 100 + round
				switch {
				case ours && k.Nodes == 1:
					handOffs *= 80
				case ours:
					handOffs *= 50
				}
				add(Contended, k, round, contestOf(n, 1, handOffs))
			}
			add(Far, k, round, contestOf(16, 1, 100))
			idle := contestOf(1, 100, 0)
			idle.Sent, idle.Wait.Max, idle.HandOff = 0.2, time.Second, contend.Quantiles{}
			add(Waiting, k, round, idle)
			if ours && !k.Barges {
				add(Inside, k, round, contestOf(1, 16, 100_000))
				add(Inside, k, round, contestOf(2, 16, 1000))
			}
		}
		for _, kind := range []string{"leasehold-1", "leasehold-5"} {
			for _, fate := range contend.Fates {
				r.Firsts = append(r.Firsts, FirstInLine{Kind: kind, Round: round, Fate: fate, TTL: 3 * time.Second, Took: time.Duration(1+round) * time.Millisecond})
			}
		}
	}
	return r
}

// change applies how to every measurement of that scenario, kind and size.
func (r *Run) change(scenario, kind string, processes int, how func(*contend.Figures)) *Run {
	for i := range r.Contests {
		if c := &r.Contests[i]; c.Scenario == scenario && c.Kind == kind && c.Processes == processes {
			how(&c.Figures)
		}
	}
	return r
}

func missed(r *Run) []string {
	var what []string
	for _, a := range aimsOf(r) {
		if a.judged && !a.reached {
			what = append(what, a.what)
		}
	}
	return what
}

func TestAims(t *testing.T) {
	all := aimsOf(contentious())
	if got := missed(contentious()); len(got) > 0 {
		t.Errorf("missed: %q, want none", got)
	}
	judged := 0
	for _, a := range all {
		if a.judged {
			judged++
		}
	}
	if judged != 28 || len(all) <= judged {
		t.Errorf("%d of %d figures have aims, want 28 and some without: %+v", judged, len(all), all)
	}
	half := func(f *contend.Figures) { f.HandOffs /= 50 }
	for want, r := range map[string]*Run{
		"2 processes, 1 node: hand-offs per second":               contentious().change(Contended, "leasehold-1", 2, half),
		"16 processes, 1 node: hand-offs per second":              contentious().change(Contended, "leasehold-1", 16, half),
		"16 processes, 1 node: fairness":                          contentious().change(Contended, "leasehold-1", 16, func(f *contend.Figures) { f.Fairness = 0.9 }),
		"128 processes, 1 node: hand-offs per second":             contentious().change(Contended, "redislock", 128, func(f *contend.Figures) { f.HandOffs *= 20 }),
		"128 processes, 1 node: longest wait":                     contentious().change(Contended, "leasehold-1", 128, func(f *contend.Figures) { f.Wait.Max = 26 * time.Millisecond }),
		"128 processes, 1 node: fairness":                         contentious().change(Contended, "leasehold-1", 128, func(f *contend.Figures) { f.Fairness = 0.98 }),
		"128 processes, 1 node: processes without a turn":         contentious().change(Contended, "leasehold-1", 128, func(f *contend.Figures) { f.Starved = 1 }),
		"128 processes, 1 node: commands":                         contentious().change(Contended, "leasehold-1", 128, func(f *contend.Figures) { f.Sent *= 1.2 }),
		"16 processes, 5 nodes: hand-offs per second":             contentious().change(Contended, "leasehold-5", 16, half),
		"128 processes, 5 nodes: hand-offs per second":            contentious().change(Contended, "redsync-rueidis-5", 128, func(f *contend.Figures) { f.HandOffs *= 20 }),
		"2 processes: hand-offs per second, 5 nodes":              contentious().change(Contended, "leasehold-5", 2, half),
		"2 processes of 16 goroutines each, 1 node: the longest":  contentious().change(Inside, "leasehold-1", 2, func(f *contend.Figures) { f.LongestStay = 101 * time.Millisecond }),
		"2 processes of 16 goroutines each, 5 nodes: the longest": contentious().change(Inside, "leasehold-5", 2, func(f *contend.Figures) { f.LongestStay = time.Second }),
		"waiting, 100 goroutines of one process, 1 node: comman":  contentious().change(Waiting, "leasehold-1", 1, func(f *contend.Figures) { f.Sent = 1 }),
		"waiting, 100 goroutines of one process, 5 nodes: clien":  contentious().change(Waiting, "leasehold-5", 1, func(f *contend.Figures) { f.ClientCPU *= 3 }),
		"16 processes: hand-offs per second, Leasehold, a file":   contentious().change(Contended, "leasehold-file", 16, half),
		"the first waiter is killed, 1 node":                      slow(contend.Killed, 6*time.Millisecond),
		"the first waiter is frozen, 5 nodes":                     slow(contend.Frozen, 4*time.Second),
	} {
		found := false
		for _, what := range missed(r) {
			found = found || strings.HasPrefix(what, want)
		}
		if !found {
			t.Errorf("missed: %q, want %q among them", missed(r), want)
		}
	}
	if got := aimsOf(&Run{}); len(got) > 0 {
		t.Errorf("aims of an empty run: %+v, want none", got)
	}
}

// Peers are those of the same engine: an advisory lock of PostgreSQL outlives no connection.
func TestPeersOfAnotherEngineDoNotCount(t *testing.T) {
	r := contentious().change(Contended, "advisory-postgresql", 16, func(f *contend.Figures) { f.HandOffs *= 1000 })
	if got := missed(r); len(got) > 0 {
		t.Errorf("missed: %q, want none", got)
	}
}

// The figures of the queue by hand show how far an aim is from what can be reached.
func TestFiguresOfTheQueueByHand(t *testing.T) {
	shown := map[string]string{}
	for _, a := range aimsOf(contentious().change(Contended, "floor-line-5", 16, func(f *contend.Figures) { f.HandOffs *= 3 })) {
		shown[a.what] = a.measured
	}
	for what, want := range map[string]string{
		"128 processes, 1 node: hand-offs per second, Leasehold / a queue by hand":          "80.00",
		"128 processes, 5 nodes: hand-offs per second, Leasehold / a queue by hand":         "50.00",
		"16 processes, 5 nodes: hand-offs per second, a queue by hand / best redsync":       "3.00",
		"16 processes, 5 nodes: hand-offs per second, a queue by hand / the same on 1 node": "3.00",
		"2 processes, 5 nodes: hand-offs per second, a queue by hand / the same on 1 node":  "1.00",
	} {
		if shown[what] != want {
			t.Errorf("%s: %q, want %s", what, shown[what], want)
		}
	}
}

func slow(fate string, took time.Duration) *Run {
	r := contentious()
	for i := range r.Firsts {
		if r.Firsts[i].Fate == fate {
			r.Firsts[i].Took = took
		}
	}
	return r
}

func TestContentionIsShown(t *testing.T) {
	var b strings.Builder
	if err := Print(&b, contentious()); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"128 processes; medians of 3 rounds of 1s", "8,080", "go-zookeeper Lock", "a round trip of 2.0 ms", "16 goroutines of one process", "100 goroutines of one process",
		"2 processes of 16 goroutines each", "killed", "TTL of places", "reached", "commands/hand-off",
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%s\nwant text with %q", b.String(), part)
		}
	}
	for _, none := range []string{"**missed**", "OVERLAPS", "starved"} { // empty columns are left out
		if strings.Contains(b.String(), none) {
			t.Errorf("%s\nwant no %q", b.String(), none)
		}
	}
}

// A failed measurement does not count as a fast one.
func TestFailureIsNotFast(t *testing.T) {
	r := contentious()
	for i := range r.Firsts {
		if r.Firsts[i].Round == 0 {
			r.Firsts[i].Failed, r.Firsts[i].Took = "hung", 0
		}
	}
	if got := missed(r); len(got) != 3 {
		t.Errorf("missed: %q, want 3", got)
	}
	var b strings.Builder
	if err := Print(&b, r); err != nil || !strings.Contains(b.String(), "1 times no waiter got the lock") {
		t.Errorf("%v: %s\nwant the number of failures", err, b.String())
	}
}

// An aim against a peer without hand-offs is reached, unless ours has none either.
func TestPeerWithoutHandOffs(t *testing.T) {
	none := func(f *contend.Figures) { f.HandOffs = 0 }
	r := contentious().change(Contended, "rueidislock-1", 2, none)
	if a := aimsOf(r)[0]; a.measured == "+Inf" {
		t.Errorf("%+v, want a number, as the peer's other kind hands off", a)
	}
	r = r.change(Contended, "rueidislock-3", 2, none)
	if got := missed(r); len(got) > 0 {
		t.Errorf("missed: %q, want none", got)
	}
	if a := aimsOf(r)[0]; !a.judged || a.measured != "+Inf" {
		t.Errorf("%+v, want it judged, and +Inf", a)
	}
	if a := aimsOf(r.change(Contended, "leasehold-1", 2, none))[0]; a.reached || a.measured != "0.00" {
		t.Errorf("%+v, want it missed, and 0.00", a)
	}
}

// Two holders at once are reported in the table and as an error.
func TestOverlapsAreReported(t *testing.T) {
	r := contentious()
	if err := Overlapped(r); err != nil {
		t.Error(err)
	}
	r.change(Contended, "etcd", 16, func(f *contend.Figures) { f.Overlaps, f.Overlap = 3, "both" })
	if err := Overlapped(r); err == nil || !strings.Contains(err.Error(), "etcd") || !strings.Contains(err.Error(), "both") {
		t.Errorf("%v, want an error with %q and text with %q", err, "etcd", "both")
	}
	var b strings.Builder
	if err := Print(&b, r); err != nil || !strings.Contains(b.String(), "OVERLAPS") {
		t.Errorf("%v: %s\nwant the overlaps", err, b.String())
	}
}

func TestApart(t *testing.T) {
	whole, dir := sample(), t.TempDir()
	other := contentious()
	whole.Contests, whole.Firsts, whole.RoundTrip = other.Contests, other.Firsts, other.RoundTrip
	alone, contended := whole.Apart()
	if !reflect.DeepEqual(alone, sample()) {
		t.Error("the figures of locks without contention have changed, want them as they were")
	}
	if alone.Contended() || !contended.Contended() || len(contended.Cells)+len(contended.Held) > 0 {
		t.Errorf("%+v, want only the figures of contended locks", contended)
	}
	path := filepath.Join(dir, "contention.json")
	if err := contended.Write(path); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path); err != nil || !reflect.DeepEqual(got, contended) {
		t.Errorf("what was read is not what was written, %v, want the same", err)
	}
	if alone, contended := (&Run{}).Apart(); alone != nil || contended != nil {
		t.Error("parts of an empty run, want none")
	}
}

// A document keeps what a run has not measured.
func TestDocumentInParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	read := func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if err := os.WriteFile(path, []byte("a\n"+begin+"\nOLD\n"+end+"\nb\n"+beginContention+"\nOLDER\n"+endContention+"\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Document(path, contentious()); err != nil {
		t.Fatal(err)
	}
	if s := read(); !strings.Contains(s, "OLD\n") || strings.Contains(s, "OLDER") || !strings.Contains(s, "| 128 processes, 1 node: fairness (Jain) | 0.995 |") || strings.Contains(s, "aim") || strings.Contains(s, "reached") || !strings.HasSuffix(s, endContention+"\nc\n") {
		t.Errorf("%s\nwant the new figures of contention, without aims, and the other figures as they were", s)
	}
	if err := Document(path, sample()); err != nil {
		t.Fatal(err)
	}
	if s := read(); strings.Contains(s, "OLD") || !strings.Contains(s, "| 128 processes, 1 node: fairness (Jain) |") || !strings.Contains(s, "| Leasehold, 5 nodes |") {
		t.Errorf("%s, want no %q, text with %q and %q", s, "OLD", "| 128 processes, 1 node: fairness (Jain) |", "| Leasehold, 5 nodes |")
	}
	if err := os.WriteFile(path, []byte(begin+end), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Document(path, contentious()); err == nil {
		t.Error("a document without a place for contention: no error, want one")
	}
}
