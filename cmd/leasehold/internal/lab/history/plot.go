package history

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Sizes of the plot, in pixels.
const (
	laneHeight   = 14
	leftMargin   = 170
	topMargin    = 58
	perSecond    = 60
	widest       = 8000
	narrowest    = 900
	mostAttempts = 20_000 // that a browser shows without trouble
)

// plot draws a history.
type plot struct {
	*History
	*bufio.Writer
	from, to clock.Instant
	scale    float64 // pixels per second
	lanes    []string
	wrong    map[*Attempt]bool
}

// Plot writes the history as an SVG image. It has a lane for every goroutine,
// with its waits and holds, and lanes for the faults. The attempts of violations
// are highlighted. If the history is too long to draw, Plot shows the part around
// the first violation, or the end.
func (h *History) Plot(w io.Writer, violations []Violation) error {
	p := &plot{History: h, Writer: bufio.NewWriter(w), from: h.Start, to: h.End, wrong: map[*Attempt]bool{}}
	for _, v := range violations {
		for _, a := range v.Attempts {
			p.wrong[a] = true
		}
	}
	attempts := p.choose(violations)
	p.scale = min(max(perSecond*p.to.Sub(p.from).Seconds(), narrowest), widest) / max(p.to.Sub(p.from).Seconds(), 0.001)
	p.lay(attempts)
	p.frame()
	for _, f := range h.Faults {
		p.fault(f)
	}
	for _, a := range attempts {
		p.attempt(a)
	}
	p.WriteString("</svg>\n")
	return p.Flush()
}

// choose returns the attempts to draw, and sets the time they span.
func (p *plot) choose(violations []Violation) []*Attempt {
	all := p.Attempts
	if len(all) <= mostAttempts {
		return all
	}
	last := len(all)
	for _, v := range violations {
		for _, a := range v.Attempts {
			if i := slices.Index(all, a); i >= 0 && last == len(all) {
				last = min(i+mostAttempts/2, len(all))
			}
		}
	}
	all = all[max(0, last-mostAttempts):last]
	p.from, p.to = all[0].Asked, all[0].Asked
	for _, a := range all {
		p.from, p.to = min(p.from, a.Asked), max(p.to, a.Answered, a.Released)
	}
	return all
}

// lay finds the lanes: what was disturbed besides the workers, then each
// worker followed by its goroutines.
func (p *plot) lay(attempts []*Attempt) {
	workers := map[string]int{} // and how many goroutines they have
	for _, a := range attempts {
		w := Worker(a.Proc)
		workers[w] = max(workers[w], a.G+1)
	}
	for _, f := range p.Faults {
		if _, known := workers[f.On]; !known && !slices.Contains(p.lanes, f.On) {
			p.lanes = append(p.lanes, f.On)
		}
	}
	slices.Sort(p.lanes)
	var names []string
	for w := range workers {
		names = append(names, w)
	}
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b) // worker 2 before worker 10
		}
		return strings.Compare(a, b)
	})
	for _, w := range names {
		p.lanes = append(p.lanes, w)
		for g := range workers[w] {
			p.lanes = append(p.lanes, lane(w, g))
		}
	}
}

// Worker is what process proc is called among what was disturbed.
func Worker(proc int) string { return fmt.Sprintf("worker %d", proc) }

func lane(worker string, g int) string { return fmt.Sprintf("%s/%d", worker, g) }

func (p *plot) x(t clock.Instant) float64 {
	return leftMargin + min(max(t, p.from), p.to).Sub(p.from).Seconds()*p.scale
}

func (p *plot) y(lane string) int { return topMargin + slices.Index(p.lanes, lane)*laneHeight }

func (p *plot) frame() {
	width, height := int(p.x(p.to))+20, topMargin+len(p.lanes)*laneHeight+10
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="10">`+"\n", width, height)
	fmt.Fprintf(p, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	x := leftMargin
	for i, name := range p.Locks {
		fmt.Fprintf(p, `<rect x="%d" y="6" width="10" height="10" fill="%s"/><text x="%d" y="15">%s</text>`+"\n", x, colour(i), x+14, html.EscapeString(name))
		x += 30 + 6*len(name)
	}
	fmt.Fprintf(p, `<text x="%d" y="32">bar: could trust its lease; pale bar: until it was released; line: waited; dashed: outcome unknown; red frame: in a violation; grey: disturbed (see the tooltips)</text>`+"\n", leftMargin)
	for i, name := range p.lanes {
		y, weight := topMargin+i*laneHeight, ""
		if !strings.Contains(name, "/") {
			weight = ` font-weight="bold"`
		}
		fmt.Fprintf(p, `<text x="4" y="%d"%s>%s</text><line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#eeeeee"/>`+"\n",
			y+10, weight, html.EscapeString(name), leftMargin, y+laneHeight, width, y+laneHeight)
	}
	each := 1
	for p.scale*float64(each) < 50 {
		each *= 10
	}
	for s := 0; ; s += each {
		at := p.Start.Add(time.Duration(s) * time.Second)
		if at > p.to {
			break
		}
		if at >= p.from {
			fmt.Fprintf(p, `<text x="%.1f" y="50">%ds</text><line x1="%[1]f" y1="52" x2="%[1]f" y2="%[3]d" stroke="#dddddd"/>`+"\n", p.x(at), s, height)
		}
	}
}

// fault draws a fault behind everything in its lane and, for a worker, behind its
// goroutines as well.
func (p *plot) fault(f *Fault) {
	from, to := p.x(f.At), p.x(max(f.End, f.At))
	tall := laneHeight
	for slices.Contains(p.lanes, lane(f.On, tall/laneHeight-1)) {
		tall += laneHeight
	}
	fmt.Fprintf(p, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#888888" fill-opacity="0.35"><title>%s</title></rect>`+"\n",
		from, p.y(f.On), max(to-from, 2), tall, html.EscapeString(fmt.Sprintf("%s, %s to %s: %s", f.On, p.Since(f.At), p.Since(max(f.End, f.At)), f.What)))
}

func (p *plot) attempt(a *Attempt) {
	y := p.y(lane(Worker(a.Proc), a.G))
	answered := a.Answered
	if answered == 0 {
		answered = max(a.Killed, a.Asked)
	}
	style := ""
	if a.Outcome == Unknown {
		style = ` stroke-dasharray="2,2"`
	}
	fmt.Fprintf(p, `<g><title>%s</title><line x1="%.1f" y1="%d" x2="%.1f" y2="%[3]d" stroke="%[5]s"%[6]s/>`,
		html.EscapeString(p.Tell(a)), p.x(a.Asked), y+laneHeight/2, p.x(answered), colour(a.Lock), style)
	if a.Outcome == Granted {
		_, to, _, _ := a.Trusted()
		to = max(to, a.Answered)
		if a.Released > to {
			p.bar(a, y, to, a.Released, ` fill-opacity="0.3"`)
		}
		p.bar(a, y, a.Answered, to, "")
	}
	if a.Killed != 0 {
		fmt.Fprintf(p, `<text x="%.1f" y="%d">✕</text>`, p.x(a.Killed)-4, y+laneHeight-3)
	}
	p.WriteString("</g>\n")
}

func (p *plot) bar(a *Attempt, y int, from, to clock.Instant, style string) {
	if p.wrong[a] {
		style += ` stroke="red" stroke-width="2"`
	}
	fmt.Fprintf(p, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"%s/>`,
		p.x(from), y+2, max(p.x(to)-p.x(from), 1), laneHeight-4, colour(a.Lock), style)
}

// colours distinguish locks, as far as people can tell them apart.
var colours = []string{"#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22"}

func colour(lock int) string { return colours[lock%len(colours)] }
