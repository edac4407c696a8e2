package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/sameseed"
)

var (
	seeds  = flag.Int("seeds", 0, "how many seeds TestSeeds runs (0: a few); if it is set, a summary is printed at the end")
	first  = flag.Uint64("first", 1, "the first of these seeds")
	seed   = flag.Uint64("seed", 1, "the seed that TestReplay replays")
	proved = flag.Bool("proved", true, "compare what TestSeeds runs with the steps of the proof, which costs some time")
	script = flag.String("script", "", "the script, or the file with the script, that TestReplay replays instead")
)

// verdict has the totals of TestSeeds, for the summary.
var verdict struct {
	sync.Mutex
	runs, violations int
	simulated        time.Duration
	tally            Tally
}

func TestMain(m *testing.M) {
	sameseed.Set("12")
	began := time.Now()
	code := m.Run()
	if v := &verdict; *seeds > 0 && v.runs > 0 {
		hours, took := v.simulated.Hours(), time.Since(began)
		fmt.Printf("%+v\n", v.tally)
		fmt.Printf("%.1f simulated hours in %v: %.2f hours a second\n", hours, took.Round(time.Second), hours/took.Seconds())
		fmt.Printf("%d seeds, %d violations\n", v.runs, v.violations)
	}
	os.Exit(code)
}

// The script of each seed keeps every promise. Together the scripts reach every kind of trouble.
func TestSeeds(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = 24
	}
	t.Run("shards", func(t *testing.T) {
		shards := min(n, runtime.GOMAXPROCS(0))
		for shard := range shards {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				for i := shard; i < n; i += shards {
					runSeed(t, *first+uint64(i))
				}
			})
		}
	})
	v := &verdict
	for i, n := range v.tally.fields() {
		if rare := []*int{&v.tally.Buried, &v.tally.Refused, &v.tally.Regained}; *n == 0 && !slices.Contains(rare, n) {
			t.Errorf("field %d of the tally is 0 after %d seeds, want every kind of event: %+v", i, v.runs, v.tally)
		}
	}
}

func runSeed(t *testing.T, seed uint64) {
	s := AnyOfSeed(seed)
	sw := Shipped()
	sw.PromisesOnly = !*proved
	r := Run(t, s, sw, false)
	verdict.Lock()
	verdict.runs++
	verdict.violations += min(1, len(r.Violations))
	verdict.simulated += r.Simulated
	verdict.tally.Add(r.Tally)
	verdict.Unlock()
	if len(r.Violations) > 0 {
		report(t, fmt.Sprintf("-seed=%d", seed), s, r)
	}
}

// report fails the test with the violations, how to replay them, and the end of the history of
// the smallest script that still shows one.
func report(t *testing.T, flags string, s Script, r Result) {
	t.Helper()
	small := Shrink(s, func(s Script) bool { return len(Run(t, s, Shipped(), false).Violations) > 0 })
	again := Run(t, small, Shipped(), true)
	const replay = "go test ./internal/proof/sim -run '^TestReplay$' -v "
	var b strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "%s\n", v)
	}
	fmt.Fprintf(&b, "\nreplay:  %s%s\n", replay, flags)
	fmt.Fprintf(&b, "smaller: %s-script='%s'\n", replay, small)
	fmt.Fprintf(&b, "keep it: write the script to a file in testdata/kept\n\nthe end of the smaller history (o1, o2, ... are attempts; c1.w1 is a goroutine of client 1; n1 is a node):\n")
	lines := again.History
	if len(lines) > 80 {
		lines = lines[len(lines)-80:]
	}
	for _, l := range lines {
		fmt.Fprintln(&b, l)
	}
	t.Error(b.String())
}

// TestReplay runs one seed or script, and with -v prints its history.
func TestReplay(t *testing.T) {
	s := AnyOfSeed(*seed)
	if *script != "" {
		s = read(t, *script)
	}
	r := Run(t, s, Shipped(), true)
	if testing.Verbose() {
		fmt.Println(s)
		for _, l := range r.History {
			fmt.Println(l)
		}
		fmt.Printf("%+v, digest %016x, %v simulated\n", r.Tally, r.Digest, r.Simulated)
	}
	for _, v := range r.Violations {
		t.Error(v)
	}
}

// read returns a script, given as text or as the name of a file.
func read(t *testing.T, text string) Script {
	t.Helper()
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		b, err := os.ReadFile(text)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
