package report

import (
	"bytes"
	"image/png"
	"math"
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold/bench/contend"
	"github.com/leasehold-dev/leasehold/bench/locks"
)

// Each part of a run is drawn, with a line for each implementation that was measured and
// a title for each group.
func TestCharts(t *testing.T) {
	whole := sample()
	whole.Contests = contentious().Contests
	all := Charts(whole)
	if len(all) != 3 {
		t.Fatalf("%d charts, want 3", len(all))
	}
	for i, c := range all {
		kinds := slices.DeleteFunc(slices.Clone(locks.All), func(k locks.Kind) bool { return k.Benchmark != "" })
		switch i {
		case 1:
			kinds = locks.Contended
		case 2:
			kinds = slices.DeleteFunc(slices.Clone(locks.Contended), func(k locks.Kind) bool { return !k.Counted() })
		}
		lines := c.draw.lines()
		want := len(kinds)
		for _, g := range groups {
			if slices.ContainsFunc(kinds, g.which) {
				want++
			}
		}
		if len(lines) != want {
			t.Errorf("%s: %d lines, want %d", c.File, len(lines), want)
		}
		image, err := c.PNG()
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := png.Decode(bytes.NewReader(image))
		if err != nil {
			t.Fatal(err)
		}
		green := 0
		r, g, b, _ := colours[locks.Ours].RGBA()
		for y := range decoded.Bounds().Dy() {
			for x := range decoded.Bounds().Dx() {
				if r2, g2, b2, _ := decoded.At(x, y).RGBA(); r2 == r && g2 == g && b2 == b {
					green++
				}
			}
		}
		if green < 100 {
			t.Errorf("%s has %d points of Leasehold's colour, want 100 at least", c.File, green)
		}
	}
	if all := Charts(&Run{}); len(all) != 0 {
		t.Errorf("%d charts of an empty run, want none", len(all))
	}
}

// A run may have four numbers of goroutines. A chart of more says that it cannot be drawn.
func TestChartsOfManyNumbers(t *testing.T) {
	r := sample()
	for _, c := range []struct {
		goroutines int
		drawn      bool
	}{{64, true}, {1024, false}} {
		r.Cells = append(r.Cells, Cell{Healthy, "leasehold-5", 0, figuresOf(c.goroutines, 1000)})
		if _, err := Charts(r)[0].PNG(); (err == nil) != c.drawn {
			t.Errorf("with %d goroutines too: %v, want a picture: %v", c.goroutines, err, c.drawn)
		}
	}
}

// The best of a group is its first line: the one with most operations, or with the fewest
// commands.
func TestTheBestIsFirst(t *testing.T) {
	r := contentious().change(Waiting, "redsync-goredis-1", 1, func(f *contend.Figures) { f.Sent = 900 })
	first := func(c chart) (labels []string, last string) {
		group := false
		for _, l := range c.lines() {
			if l.role == "" {
				group = l.label == groups[1].title
			} else if group {
				labels = append(labels, l.label)
			}
		}
		return labels, labels[len(labels)-1]
	}
	if labels, _ := first(contended(r)); labels[0] != "Leasehold" {
		t.Errorf("hand-offs: %q, want Leasehold first", labels)
	}
	if labels, last := first(idle(r)); last != "redsync on go-redis" {
		t.Errorf("commands: %q, want redsync on go-redis last", labels)
	}
}

// A figure of zero has no place on the scale and does not stretch it.
func TestScaleOfCharts(t *testing.T) {
	for _, c := range []struct {
		figures     []float64
		least, most float64
	}{
		{[]float64{0, 7, 900}, 1, 1000},
		{[]float64{0.2, math.NaN()}, 0.1, 1},
		{[]float64{999}, 100, 10_000}, // a mark at the edge would be cut
		{[]float64{0}, 1, 10},
	} {
		if least, most := scale([]chartLine{{figures: c.figures}}); math.Abs(least-c.least) > 1e-9 || math.Abs(most-c.most) > 1e-9 {
			t.Errorf("%v: from %v to %v, want %v to %v", c.figures, least, most, c.least, c.most)
		}
	}
}
