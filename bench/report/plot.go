package report

import (
	"fmt"
	"html"
	"strings"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// Sizes of the plot, in pixels.
const (
	labels    = 300 // width of the names
	panel     = 250 // width of a column
	valueRoom = 62  // right of the longest bar
	barHeight = 13
	lineStep  = 19
	top       = 64
)

var colours = map[locks.Role]string{locks.Ours: "#1f6f5c", locks.Peer: "#8a8fa0", locks.Floor: "#d9b35b"}

// group is some bars with a title.
type group struct {
	title string
	which func(locks.Kind) bool
}

var groups = []group{
	{"A majority of five Redis servers", func(k locks.Kind) bool { return k.Nodes == 5 }},
	{"One Redis server", func(k locks.Kind) bool { return k.Nodes == 1 && k.Engine == locks.Redis }},
	{"Others", func(k locks.Kind) bool { return k.Engine != locks.Redis }},
}

// spread is what the rounds have found.
type spread struct{ least, median, most float64 }

// chart is bars in groups, in a column for each number.
type chart struct {
	title   string
	kinds   []locks.Kind
	numbers []int
	column  func(n int) string
	found   func(k locks.Kind, n int) (spread, bool)
	note    string
}

// Plot draws throughput with all servers up as an SVG image: a bar for each
// implementation and number of goroutines, and how far the rounds were apart.
// Those on five servers share a scale, and so do those on one, for each number.
func Plot(r *Run) string {
	m := mediansOf(r)
	return chart{
		title: "Lock + unlock per second, each goroutine with a lock of its own", kinds: locks.All, numbers: m.goroutines(Healthy), column: plural,
		found: func(k locks.Kind, n int) (spread, bool) {
			at := key{Healthy, k.Name, n}
			row, ok := m.rows[at]
			return spread{m.spread[at][0], row.PerSecond, m.spread[at][1]}, ok
		},
		note: noteOf(r),
	}.svg()
}

// ContentionPlot draws how often a lock changes hands in the same way.
func ContentionPlot(r *Run) string {
	medians := contestedOf(r)
	c := chart{
		title: "Changes of holder per second of one lock that all processes want", kinds: locks.Contended,
		column: func(n int) string { return crowdOf(n, 1) },
		found: func(k locks.Kind, n int) (spread, bool) {
			m, ok := medians[crowd{Contended, k.Name, n, 1}]
			return m.spread, ok
		},
		note: noteOf(r),
	}
	for _, size := range sizes(medians, Contended) {
		c.numbers = append(c.numbers, size[0])
	}
	return c.svg()
}

func noteOf(r *Run) string {
	return fmt.Sprintf("Medians of %d rounds, the line from the slowest to the fastest round. Scales differ by column, and between five servers and one. %s", r.Rounds, r.Machine)
}

func (c chart) svg() string {
	var body strings.Builder
	y := top
	for _, g := range groups {
		var kinds []locks.Kind
		for _, k := range c.kinds {
			if len(c.numbers) > 0 && g.which(k) {
				if _, ok := c.found(k, c.numbers[0]); ok {
					kinds = append(kinds, k)
				}
			}
		}
		if len(kinds) == 0 {
			continue
		}
		y += 8
		fmt.Fprintf(&body, `<text x="12" y="%d" class="g">%s</text>`+"\n", y+barHeight-2, html.EscapeString(g.title))
		y += lineStep
		for _, k := range kinds {
			fmt.Fprintf(&body, `<text x="24" y="%d">%s</text>`+"\n", y+barHeight-3, html.EscapeString(shortLabel(k)))
			for i, n := range c.numbers {
				c.bar(&body, k, n, labels+i*panel, y)
			}
			y += lineStep
		}
	}
	width, height := labels+len(c.numbers)*panel+12, y+36
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	b.WriteString(`<style>text{fill:#222}.t{font-size:15px;font-weight:bold}.g{font-weight:bold}.v{font-size:11px}.s{fill:#555;font-size:11px}</style>` + "\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="12" y="24" class="t">%s</text>`+"\n", html.EscapeString(c.title))
	for i, n := range c.numbers {
		fmt.Fprintf(&b, `<text x="%d" y="52" class="g">%s</text>`+"\n", labels+i*panel, c.column(n))
	}
	b.WriteString(body.String())
	fmt.Fprintf(&b, `<text x="12" y="%d" class="s">%s</text>`+"\n", y+20, html.EscapeString(c.note))
	b.WriteString("</svg>\n")
	return b.String()
}

// bar draws one bar at x, y, with its value and the spread of the rounds.
func (c chart) bar(b *strings.Builder, k locks.Kind, n, x, y int) {
	found, ok := c.found(k, n)
	if !ok {
		return
	}
	most := 0.0
	for _, other := range c.kinds {
		if other.Nodes == k.Nodes {
			beside, _ := c.found(other, n)
			most = max(most, beside.most)
		}
	}
	scale := (panel - valueRoom) / max(most, 1)
	wide := func(v float64) float64 { return v * scale }
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, x, y, max(wide(found.median), 1), barHeight, colours[k.Role])
	fmt.Fprintf(b, `<path d="M%.1f %dh%.1f" stroke="#222"/>`, float64(x)+wide(found.least), y+barHeight/2+1, wide(found.most-found.least))
	fmt.Fprintf(b, `<text x="%.1f" y="%d" class="v">%s</text>`+"\n", float64(x)+wide(found.most)+5, y+barHeight-3, load.Thousands(found.median))
}

// shortLabel is the label without what the title of its group says.
func shortLabel(k locks.Kind) string {
	for _, end := range []string{", 1 node", ", 5 nodes"} {
		if s, ok := strings.CutSuffix(k.Label, end); ok {
			return s
		}
	}
	return k.Label
}
