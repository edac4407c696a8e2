// Command pictures draws the pictures of docs/pictures.md: run it in this folder.
//
// A picture is 400 units wide with text of at least 14, so that it can be read on a phone. It
// has a background and colours of its own for light and for dark screens.
package main

import (
	"fmt"
	"html"
	"log"
	"os"
	"strings"
)

func main() {
	for name, picture := range pictures() {
		if err := os.WriteFile(name, []byte(picture), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// pictures returns the text of each SVG by the name of its file.
func pictures() map[string]string {
	return map[string]string{
		"overview.svg": overview(),
		"lease.svg":    lease(),
		"majority.svg": majority(),
		"restart.svg":  restart(),
		"late.svg":     late(),
		"handoff.svg":  handoff(),
	}
}

const (
	width = 400
	head  = `<style>
svg { --paper: #ffffff; --ink: #1f2328; --soft: #57606a; --box: #f3f5f7; --good: #1a7f37; --bad: #c01c28; --busy: #0a58ca; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --soft: #a3adb8; --box: #1c2430; --good: #56d364; --bad: #ff8680; --busy: #79b8ff; }
}
text { font: 14px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: var(--ink); }
.halo { paint-order: stroke; stroke: var(--paper); stroke-width: 5px; stroke-linejoin: round; }
.bold { font-weight: 600; }
.soft { fill: var(--soft); }
.good { fill: var(--good); }
.bad { fill: var(--bad); }
.busy { fill: var(--busy); }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
</style>
`
)

// A canvas collects the elements of one picture.
type canvas struct {
	strings.Builder
	title  string
	height int
}

func (c *canvas) add(format string, args ...any) {
	fmt.Fprintf(c, format+"\n", args...)
}

// svg returns the picture.
func (c *canvas) svg() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">
<title>%s</title>
%s<rect width="%d" height="%d" rx="8" fill="var(--paper)"/>
%s</svg>
`, width, c.height, width, c.height, html.EscapeString(c.title), head, width, c.height, c.Builder.String())
}

// text writes lines on the background, below each other; y is the base line of the first.
// Classes are those of the style: a colour, "bold", and "middle" or "end" for where x is.
func (c *canvas) text(x, y int, classes string, lines ...string) {
	c.label(x, y, "halo "+classes, lines...)
}

// label writes lines in a box or a bar.
func (c *canvas) label(x, y int, classes string, lines ...string) {
	for i, line := range lines {
		c.add(`<text x="%d" y="%d" class="%s">%s</text>`, x, y+18*i, classes, html.EscapeString(line))
	}
}

// box draws a box in a colour, with lines in its middle. The first line is bold.
func (c *canvas) box(x, y, w, h int, colour string, lines ...string) {
	c.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="var(--box)" stroke="var(--%s)" stroke-width="1.5"/>`, x, y, w, h, colour)
	first := y + h/2 + 5 - 9*(len(lines)-1)
	c.label(x+w/2, first, "bold middle", lines[0])
	c.label(x+w/2, first+18, "middle", lines[1:]...)
}

// bar draws a span of time, with a line of text in it.
func (c *canvas) bar(x1, x2, y int, colour, line string) {
	c.add(`<rect x="%d" y="%d" width="%d" height="26" rx="4" fill="var(--paper)"/>`, x1, y, x2-x1)
	c.add(`<rect x="%d" y="%d" width="%d" height="26" rx="4" fill="var(--%s)" fill-opacity="0.18" stroke="var(--%s)"/>`, x1, y, x2-x1, colour, colour)
	c.label((x1+x2)/2, y+18, "middle", line)
}

func (c *canvas) line(x1, y1, x2, y2 int, colour, dashes string) {
	c.add(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="var(--%s)" stroke-width="1.5" stroke-dasharray="%s"/>`, x1, y1, x2, y2, colour, dashes)
}

// across draws an arrow to the left or to the right, with a line of text above it.
func (c *canvas) across(x1, x2, y int, colour, line string) {
	point := 8
	if x2 < x1 {
		point = -8
	}
	c.line(x1, y, x2-point, y, colour, "none")
	c.add(`<path d="M%d %dl%d -5v10z" fill="var(--%s)"/>`, x2, y, -point, colour)
	if line != "" {
		c.text((x1+x2)/2, y-7, "middle "+colour, line)
	}
}

// down draws an arrow downwards.
func (c *canvas) down(x, y1, y2 int, colour string) {
	c.line(x, y1, x, y2-8, colour, "none")
	c.add(`<path d="M%d %dl-5 -8h10z" fill="var(--%s)"/>`, x, y2, colour)
}

func overview() string {
	c := &canvas{title: "A holder and a waiter at a store, and data that refuses an old token", height: 372}
	c.box(10, 14, 160, 62, "good", "process A", "holds the lock")
	c.box(230, 14, 160, 62, "busy", "process B", "waits")
	c.down(150, 76, 126, "good")
	c.text(158, 106, "good", "renews")
	c.down(310, 76, 126, "busy")
	c.text(302, 106, "busy end", "is next")
	c.box(120, 126, 270, 66, "ink", "store", "lock “report”: A, token 33", "queue: B")
	c.down(50, 76, 306, "good")
	c.text(58, 234, "good", "writes with", "token 33:", "accepted")
	c.box(210, 218, 180, 48, "bad", "process Z", "paused too long")
	c.down(300, 266, 306, "bad")
	c.text(292, 291, "bad end", "token 32: refused")
	c.box(10, 306, 380, 54, "ink", "your data", "remembers the largest token: 33")
	return c.svg()
}

func lease() string {
	c := &canvas{title: "The life of a lease with a TTL of 30 seconds", height: 396}
	at := func(s int) int { return 18 + s*61/10 }
	c.text(14, 24, "bold", "A lease with a TTL of 30 s")
	for _, s := range []int{0, 10, 20, 30, 40, 50} {
		c.text(at(s), 50, "soft middle", fmt.Sprint(s, " s"))
		c.line(at(s), 56, at(s), 370, "soft", "2 5")
	}
	c.text(14, 80, "", "renewals: one each third of the TTL")
	for _, s := range []int{0, 10, 20} {
		c.text(at(s), 106, "good bold middle", "✓")
	}
	for _, s := range []int{30, 40} {
		c.text(at(s), 106, "bad bold middle", "✗")
	}
	c.text(at(30)-16, 124, "bad", "the store is gone")

	c.text(14, 156, "", "the holder")
	c.bar(at(0), at(44), 164, "good", "works")
	c.bar(at(44), at(49), 164, "bad", "")
	c.line(at(44), 190, at(44), 204, "bad", "none")
	c.text(at(49), 220, "bad end", "notice: told to stop,", "and stopped at the deadline")

	c.text(14, 268, "", "the store keeps the lock")
	c.bar(at(0), at(20), 276, "ink", "")
	c.bar(at(20), at(50), 276, "ink", "30 s from the last ✓")

	c.text(14, 332, "", "somebody else")
	c.bar(at(50), 386, 340, "busy", "can")
	c.text(at(50)-8, 358, "busy end", "cannot have the lock")
	c.text(386, 387, "soft end", "The notice is drawn longer than it is.")
	return c.svg()
}

func majority() string {
	c := &canvas{title: "A majority of five servers, two of which are dead", height: 338}
	c.box(110, 14, 180, 44, "good", "client A", "asks all five")
	for i := range 5 {
		x := 10 + i*77
		middle := x + 36
		if i < 3 {
			c.line(200, 58, middle, 124, "good", "none")
			c.box(x, 124, 72, 62, "good", fmt.Sprint("server ", i+1), "A")
			c.text(middle, 206, "good middle", "granted")
		} else {
			c.line(200, 58, middle, 124, "bad", "4 4")
			c.box(x, 124, 72, 62, "bad", fmt.Sprint("server ", i+1), "dead")
			c.text(middle, 206, "bad middle", "silent")
		}
	}
	c.text(200, 236, "good bold middle", "3 of 5: A has the lock")
	c.box(90, 256, 220, 44, "busy", "client B", "gets none of the three")
	c.text(200, 324, "soft middle", "Any two majorities share a server.")
	return c.svg()
}

func restart() string {
	c := &canvas{title: "A server that has restarted waits before it grants again", height: 326}
	c.text(14, 24, "bold", "Server 3 restarts and has forgotten its locks")
	c.down(90, 40, 58, "bad")
	c.text(100, 54, "bad", "restart")
	c.text(14, 84, "", "server 3")
	c.bar(14, 90, 92, "good", "votes")
	c.bar(90, 310, 92, "bad", "quarantine: grants nothing")
	c.bar(310, 386, 92, "good", "votes")
	c.text(14, 152, "", "a lease that it may have forgotten")
	c.bar(50, 280, 160, "ink", "lasts one TTL at most")
	c.line(280, 118, 280, 268, "soft", "2 5")
	c.line(310, 118, 310, 268, "soft", "2 5")
	c.text(14, 220, "", "servers 1, 2, 4 and 5")
	c.bar(14, 386, 228, "good", "go on deciding")
	c.text(200, 292, "soft middle", "When server 3 votes again,", "all that it may have forgotten is over.")
	return c.svg()
}

func late() string {
	c := &canvas{title: "A token that arrives late is refused", height: 440}
	const a, b, d = 62, 200, 338
	c.box(a-52, 12, 104, 34, "ink", "holder A")
	c.box(b-52, 12, 104, 34, "ink", "holder B")
	c.box(d-52, 12, 104, 34, "ink", "your data")
	for _, x := range []int{a, b, d} {
		c.line(x, 46, x, 430, "soft", "2 5")
	}
	c.bar(a-52, a+52, 62, "good", "token 33")
	c.across(a, d, 116, "good", "writes with 33")
	c.text(d, 136, "good middle", "accepted")
	c.bar(a-52, a+52, 152, "bad", "paused")
	c.text(a, 198, "bad middle", "its lease", "ends")
	c.bar(b-52, b+52, 214, "good", "token 34")
	c.across(b, d, 266, "good", "34")
	c.text(d, 286, "good middle", "accepted,", "remembers 34")
	c.bar(a-52, a+52, 316, "busy", "wakes up")
	c.across(a, d, 372, "bad", "writes with 33")
	c.text(d, 392, "bad bold middle", "refused:", "33 < 34")
	return c.svg()
}

func handoff() string {
	c := &canvas{title: "A release hands the lock to the first waiter", height: 382}
	const a, s, b = 58, 200, 342
	c.box(a-48, 12, 96, 34, "good", "holder A")
	c.box(s-48, 12, 96, 34, "ink", "store")
	c.box(b-48, 12, 96, 34, "busy", "B, then C")
	for _, x := range []int{a, s, b} {
		c.line(x, 46, x, 344, "soft", "2 5")
	}
	c.across(b, s, 84, "busy", "B: I wait")
	c.across(b, s, 120, "busy", "C: I wait")
	c.box(s-90, 136, 180, 48, "ink", "held by A, token 33", "queue: B, C")
	c.across(a, s, 224, "good", "releases")
	c.box(s-90, 240, 180, 48, "ink", "held by B, token 34", "queue: C")
	c.across(s, b, 328, "busy", "B: it is yours")
	c.text(s, 366, "soft middle", "The lock is never free in between.")
	return c.svg()
}
