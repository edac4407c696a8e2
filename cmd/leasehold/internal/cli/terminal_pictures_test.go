//go:build unix

package cli

import (
	"encoding/xml"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

var drawTerminals = flag.Bool("terminals", false, "draw the terminals of docs/terminal again")

const (
	terminals = "../../../../docs/terminal"
	// Nothing is cut off on the terminals, and their pictures have lines of at most so many columns.
	terminalColumns, pictureColumns = 250, 112
)

// The terminals that the documentation shows are those of the command as it is now: the same words
// in the same colours. Times, tokens and process numbers differ each time.
func TestTerminalPictures(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t)
	drawn := map[string]string{}
	show := func(name, shown string, args ...string) {
		t.Helper()
		drawn[name+".svg"] = screenOf("$ leasehold " + strings.Join(args, " ") + "\r\n" + shown).svg("leasehold " + strings.Join(args, " "))
	}

	h := s.hold("report", "--purpose", "nightly")
	run := []string{"run", "report", "--", "./report"}
	script := filepath.Join(s.home, "report") // what the second one waits for
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	m := s.onTerminalOf(terminalColumns, nil, "/bin/sh", append([]string{"-c", `cd && exec "$0" "$@"`, binary}, run...)...)
	m.shows("waiting 3s for")
	show("waiting", strings.TrimSuffix(m.shown.String(), "\r\x1b[K"), run...)

	second := s.hold("backup/db", "--permits", "3", "--purpose", "backup")
	w := s.onTerminalOf(terminalColumns, nil, binary, "ls")
	w.wants(0)
	<-w.ended
	show("list", w.shown.String(), "ls")
	h.let()
	second.let()
	m.wants(0)

	doctor := []string{"doctor"}
	redis := redistest.Start(t)
	d := s.onTerminalOf(terminalColumns, []string{storeVar + "=redis://" + redis.Addr() + patiently}, binary, doctor...)
	d.cmd.Wait()
	<-d.ended
	show("doctor", d.shown.String(), doctor...)

	lab := []string{"lab", "run", "delete"}
	l := s.onTerminalOf(terminalColumns, nil, binary, lab...)
	l.wants(0)
	<-l.ended
	show("delete", l.shown.String(), lab...)

	var pages strings.Builder
	names, err := filepath.Glob(filepath.Join(terminals, "..", "*.md"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(text)
	}
	if err != nil || len(names) == 0 {
		t.Fatalf("no pages (%v)", err)
	}
	for name, picture := range drawn {
		if !strings.Contains(pages.String(), "](terminal/"+name+")") {
			t.Errorf("no page shows docs/terminal/%s", name)
		}
		file := filepath.Join(terminals, name)
		if *drawTerminals {
			if err := os.WriteFile(file, []byte(picture), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		old, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := shapeOf(t, picture), shapeOf(t, string(old)); got != want {
			t.Errorf("docs/terminal/%s is not what the command shows: run \"make terminals\"\nthe command\n%s\nthe picture\n%s", name, got, want)
		}
	}
	if found, err := filepath.Glob(filepath.Join(terminals, "*.svg")); err != nil || len(found) != len(drawn) {
		t.Errorf("docs/terminal has %d pictures (%v), want %d", len(found), err, len(drawn))
	}
}

// shapeOf returns the words of a picture and their colours, without what differs each time: numbers,
// the name of the machine, and where a column or a line begins.
func shapeOf(t *testing.T, picture string) string {
	var words strings.Builder
	class, before := "", ""
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := d.Token()
		if err != nil {
			if err.Error() == "EOF" {
				break
			}
			t.Fatalf("%v in\n%s", err, picture)
		}
		switch token := token.(type) {
		case xml.StartElement:
			class = ""
			for _, a := range token.Attr {
				if token.Name.Local == "text" && a.Name.Local == "class" {
					class = a.Value
				}
			}
		case xml.CharData:
			if class != before {
				words.WriteString(" <" + class + ">")
				before = class
			}
			if text := strings.TrimSpace(string(token)); text != "" {
				words.WriteString(" " + text)
			}
		}
	}
	shape := regexp.MustCompile(`\S+ pid [0-9]+`).ReplaceAllString(words.String(), "HOST pid 0")
	return regexp.MustCompile(`([0-9][0-9.:]*(ms|[smh])?)+`).ReplaceAllString(shape, "0")
}

// A cell is one character on a terminal.
type cell struct {
	r     rune
	class string
}

// A screenful is what a terminal shows.
type screenful struct {
	lines [][]cell
	x, y  int
	class string
}

// control is a sequence of the few that the command sends.
var control = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)

// screenOf returns the screen of a terminal that was sent text. Lines are as long as they are: the
// command must not write longer ones.
func screenOf(text string) *screenful {
	s := &screenful{}
	for text != "" {
		if m := control.FindStringSubmatch(text); m != nil {
			s.control(m[1], m[2])
			text = text[len(m[0]):]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		switch r {
		case '\r':
			s.x = 0
		case '\n':
			s.y++
		default:
			line := s.line()
			for len(*line) <= s.x {
				*line = append(*line, cell{r: ' '})
			}
			(*line)[s.x] = cell{r, s.class}
			s.x++
		}
	}
	return s
}

// line returns the line with the cursor.
func (s *screenful) line() *[]cell {
	for len(s.lines) <= s.y {
		s.lines = append(s.lines, nil)
	}
	return &s.lines[s.y]
}

func (s *screenful) control(args, letter string) {
	n, _ := strconv.Atoi(args)
	switch letter {
	case "m":
		s.class = map[string]string{"31;1": "red", "33;1": "yellow", "32;1": "green", "1": "bold"}[args]
	case "K":
		*s.line() = (*s.line())[:min(s.x, len(*s.line()))]
	case "A":
		s.y = max(0, s.y-n)
	case "J": // what is typed stands above what is redrawn
		if n == 2 {
			s.lines = s.lines[:min(1, len(s.lines))]
			s.x, s.y = 0, 1
			return
		}
		*s.line() = (*s.line())[:min(s.x, len(*s.line()))]
		s.lines = s.lines[:s.y+1]
	}
}

// svg returns a picture of the screen, for light and for dark readers. Each run of cells has its
// own place and width, so columns stand below each other in any font.
func (s *screenful) svg(title string) string {
	const wide, high, margin = 8, 19, 12
	columns := 0
	var lines [][]cell
	for _, line := range s.lines {
		for len(line) > pictureColumns {
			at := pictureColumns
			for at > 1 && line[at].r != ' ' {
				at--
			}
			lines, line = append(lines, line[:at]), line[at+1:]
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		columns = max(columns, len(line))
	}
	width, height := columns*wide+2*margin, len(lines)*high+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img">
<title>%s</title>
<style>
svg { --paper: #f6f8fa; --ink: #1f2328; --red: #c01c28; --yellow: #7d5200; --green: #1a7f37; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #161b22; --ink: #e6edf3; --red: #ff8680; --yellow: #e3b341; --green: #56d364; }
}
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--ink); white-space: pre; }
.bold, .red, .yellow, .green { font-weight: 700; }
.red { fill: var(--red); }
.yellow { fill: var(--yellow); }
.green { fill: var(--green); }
</style>
<rect width="%[1]d" height="%[2]d" rx="8" fill="var(--paper)"/>
`, width, height, html.EscapeString(title))
	for y, line := range lines {
		for x := 0; x < len(line); {
			end, class := x, line[x].class
			for end < len(line) && line[end].class == class && !gap(line[end:]) {
				end++
			}
			if end > x {
				var text strings.Builder
				for _, c := range line[x:end] {
					text.WriteRune(c.r)
				}
				fmt.Fprintf(&b, `<text x="%d" y="%d" textLength="%d" class="%s">%s</text>`+"\n", margin+x*wide, margin+14+y*high, (end-x)*wide, class, html.EscapeString(text.String()))
			}
			for x = end; x < len(line) && line[x].r == ' '; x++ {
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// gap reports whether a line goes on with more than one space, or ends with one.
func gap(line []cell) bool {
	return line[0].r == ' ' && (len(line) == 1 || line[1].r == ' ' || line[0].class != line[1].class)
}
