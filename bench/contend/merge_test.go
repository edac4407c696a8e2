package contend

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// turns makes Holds from triples of asked, got and freed.
func turns(times ...int64) []Hold {
	var holds []Hold
	for t := range slices.Chunk(times, 3) {
		holds = append(holds, Hold{t[0], t[1], t[2]})
	}
	return holds
}

func TestMerge(t *testing.T) {
	f := Merge([]Log{
		{Process: 0, Holds: turns(0, 50, 90, 90, 100, 110, 110, 120, 130, 130, 300, 310)},
		{Process: 1, Holds: turns(60, 135, 150, 150, 160, 170)},
		{Process: 2, Holds: turns(10, 400, 410), Asking: 0},
		{Process: 3, Asking: 20},
	}, 4, 1, 100, 400)
	// Within the window: 0 at 100 (after itself), 0 at 120, 1 at 135, 1 at 160, 0 at 300.
	if f.Processes != 4 || f.Goroutines != 1 || f.Turns != 5 || f.HandOffs != 2 || f.Window != 300 {
		t.Errorf("%+v, want 5 turns with 2 hand-offs of 4 processes in 300ns", f)
	}
	if f.HandOff != (Quantiles{5, 5, 130}) { // of 5 and 130
		t.Errorf("hand-offs took %+v, want 5 and 130", f.HandOff)
	}
	if f.Wait.P50 != 10 || f.Wait.Max != 390 { // process 2 has waited since 10 when the window ends
		t.Errorf("waits %+v, want a median of 10 and a maximum of 390", f.Wait)
	}
	if f.Starved != 2 || f.Overlaps != 0 || f.Overlap != "" {
		t.Errorf("%+v, want 2 starved and no overlap", f)
	}
	if want := 25.0 / (4 * (9 + 4)); math.Abs(f.Fairness-want) > 1e-9 {
		t.Errorf("fairness %v, want %v", f.Fairness, want)
	}
	if f.LongestRun != 2 || f.LongestStay != 35 { // 1 from 135 to 170
		t.Errorf("%d turns in a row, %d long, want 2 and 35", f.LongestRun, f.LongestStay)
	}
	if f.Held.Max != 15 {
		t.Errorf("held %+v, want a maximum of 15", f.Held)
	}
	if in := Merge([]Log{{Process: 0, Asking: 30}}, 1, 1, 100, 400); in.Wait.Max != 370 || in.Starved != 1 || in.Fairness != 0 {
		t.Errorf("without turns: %+v, want a wait of 370 and one starved", in)
	}
	if g := Merge(make([]Log, 6), 2, 1, 0, 10); g.Goroutines != 3 {
		t.Errorf("%+v, want 3 goroutines", g)
	}
}

// Two holders at once are detected wherever they are.
func TestOverlapsAreFound(t *testing.T) {
	good := [][]Hold{turns(0, 10, 20, 30, 40, 50, 60, 70, 80), turns(0, 20, 40, 40, 50, 60)}
	merge := func(a, b []Hold) Figures {
		return Merge([]Log{{Process: 0, Holds: a}, {Process: 1, Holds: b}}, 2, 1, 0, 100)
	}
	if f := merge(good[0], good[1]); f.Overlaps != 0 {
		t.Fatalf("of turns one after the other: %+v, want no overlaps", f)
	}
	for what, c := range map[string]struct {
		a, b []Hold
		n    int
		says string
	}{
		"the other takes it 1 ns too early":      {turns(0, 10, 21), good[1], 1, "process 1 got the lock 10ns after process 0 did, 1ns before that began to release it"},
		"both at once":                           {turns(0, 20, 30), turns(0, 20, 30), 1, "0s after"},
		"within a long turn, behind a short one": {turns(0, 10, 100), turns(0, 20, 30, 30, 40, 50), 2, "process 1"},
		"it was never released":                  {turns(0, 10, Never), turns(0, 20, 30), 1, "which never released it"},
		"outside of the window":                  {turns(0, 210, 220), turns(0, 215, 220), 1, "process 1"},
		"a third one during a long turn":         {turns(0, 10, 90, 90, 95, 99), turns(0, 85, 86), 1, "75ns after"},
	} {
		if f := merge(c.a, c.b); f.Overlaps != c.n || !strings.Contains(f.Overlap, c.says) {
			t.Errorf("%s: %d overlaps, %q, want %d and %q", what, f.Overlaps, f.Overlap, c.n, c.says)
		}
	}
	// Goroutines of one process exclude each other, too.
	if f := Merge([]Log{{Process: 0, Holds: turns(0, 10, 20)}, {Process: 0, Holds: turns(0, 15, 20)}}, 1, 1, 0, 100); f.Overlaps != 1 {
		t.Errorf("%+v, want one overlap", f)
	}
}

// More holders than permits are detected, and no others.
func TestOverlapsOfPermitsAreFound(t *testing.T) {
	for limit, want := range map[int]int{1: 2, 2: 1, 3: 0} {
		f := Merge([]Log{
			{Process: 0, Holds: turns(0, 10, 50, 50, 60, 70)},
			{Process: 1, Holds: turns(0, 20, 40, 40, 50, 60)},
			{Process: 2, Holds: turns(0, 30, 35)},
		}, 3, limit, 0, 100)
		if f.Overlaps != want || limit > 1 && f.HandOff != (Quantiles{}) {
			t.Errorf("%d permits: %d overlaps, want %d; %+v", limit, f.Overlaps, want, f)
		}
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		shares []int
		want   float64
	}{{[]int{5, 5, 5}, 1}, {[]int{9, 0, 0}, 1. / 3}, {[]int{0, 0}, 0}, {nil, 0}, {[]int{3, 1}, 0.8}} {
		if got := jain(c.shares); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", c.shares, got, c.want)
		}
	}
}

func TestHoldsAreEncoded(t *testing.T) {
	want := turns(1, 2, 3, -1, math.MaxInt64, Never)
	var b bytes.Buffer
	if err := writeHolds(&b, want); err != nil {
		t.Fatal(err)
	}
	text := b.Bytes()
	if got, err := readHolds(bytes.NewReader(text), 2); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if got, err := readHolds(bytes.NewReader(text[:47]), 2); err == nil {
		t.Errorf("a part was read as %v, want an error", got)
	}
}

// Now is the clock of the machine, which is the same for all processes.
func TestNowIsTheMachineClock(t *testing.T) {
	const slack = int64(time.Millisecond) // for the calibration on a busy machine
	before := machineClock()
	now := Now()
	after := machineClock()
	if now < before-slack || now > after+slack {
		t.Errorf("Now is %d, want it between %d and %d", now, before, after)
	}
}
