package report

import (
	"fmt"
	"html"
	"strings"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/load"
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

// Plot draws throughput with all servers up as an SVG image: a bar for each
// implementation and number of goroutines, and how far the rounds were apart.
// Those on five servers share a scale, and so do those on one, for each number.
func Plot(r *Run) string {
	m := mediansOf(r)
	numbers := m.goroutines(Healthy)
	var body strings.Builder
	y := top
	for _, g := range groups {
		var kinds []locks.Kind
		for _, k := range locks.All {
			if len(numbers) > 0 && g.which(k) {
				if _, ok := m.rows[key{Healthy, k.Name, numbers[0]}]; ok {
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
			for i, n := range numbers {
				m.bar(&body, k, n, labels+i*panel, y)
			}
			y += lineStep
		}
	}
	width, height := labels+len(numbers)*panel+12, y+36
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	b.WriteString(`<style>text{fill:#222}.t{font-size:15px;font-weight:bold}.g{font-weight:bold}.v{font-size:11px}.s{fill:#555;font-size:11px}</style>` + "\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	b.WriteString(`<text x="12" y="24" class="t">Lock + unlock per second, each goroutine with a lock of its own</text>` + "\n")
	for i, n := range numbers {
		fmt.Fprintf(&b, `<text x="%d" y="52" class="g">%s</text>`+"\n", labels+i*panel, plural(n))
	}
	b.WriteString(body.String())
	fmt.Fprintf(&b, `<text x="12" y="%d" class="s">Medians of %d rounds, the line from the slowest to the fastest round. Scales differ by column, and between five servers and one. %s</text>`+"\n",
		y+20, r.Rounds, html.EscapeString(r.Machine.String()))
	b.WriteString("</svg>\n")
	return b.String()
}

// bar draws one bar at x, y, with its value and the spread of the rounds.
func (m medians) bar(b *strings.Builder, k locks.Kind, n, x, y int) {
	at := key{Healthy, k.Name, n}
	row, ok := m.rows[at]
	if !ok {
		return
	}
	most := 0.0
	for _, other := range locks.All {
		if other.Nodes == k.Nodes {
			most = max(most, m.spread[key{Healthy, other.Name, n}][1])
		}
	}
	scale := (panel - valueRoom) / max(most, 1)
	wide := func(v float64) float64 { return v * scale }
	spread := m.spread[at]
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, x, y, max(wide(row.PerSecond), 1), barHeight, colours[k.Role])
	fmt.Fprintf(b, `<path d="M%.1f %dh%.1f" stroke="#222"/>`, float64(x)+wide(spread[0]), y+barHeight/2+1, wide(spread[1]-spread[0]))
	fmt.Fprintf(b, `<text x="%.1f" y="%d" class="v">%s</text>`+"\n", float64(x)+wide(spread[1])+5, y+barHeight-3, load.Thousands(row.PerSecond))
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
