package prometheus_test

import (
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"html"
	"math"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

var pictureFile = flag.String("picture", "", "draw the dashboard's queries into this file, for two minutes (make dashboard)")

// Sizes of the picture, in pixels.
const (
	column   = 40 // of the 24 columns of a dashboard
	row      = 20
	head     = 52
	leftRoom = 44 // for the scale
	topRoom  = 26 // for a panel's title
	footRoom = 32 // for the times and the legend
)

var lineColours = []string{"#1f6f5c", "#d9822b", "#5b6abf", "#b03a5b", "#8a8fa0", "#3f8fc4"}

// series is a line of a panel.
type series struct {
	name   string
	points [][2]float64 // seconds since the beginning, and the value
}

// queryRange returns the series of a query in that time, with names of that format.
func queryRange(t *testing.T, server, expr, legend string, from, to time.Time) (found []series) {
	t.Helper()
	v := url.Values{"query": {expr}, "step": {"1"}, "start": {fmt.Sprint(from.Unix())}, "end": {fmt.Sprint(to.Unix())}}
	resp, err := http.Get(server + "/api/v1/query_range?" + v.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %s %v", expr, answer.Error, err)
	}
	for _, r := range answer.Data.Result {
		s := series{name: regexp.MustCompile(`{{(\w+)}}`).ReplaceAllStringFunc(legend, func(label string) string { return r.Metric[strings.Trim(label, "{}")] })}
		for _, value := range r.Values {
			y, err := strconv.ParseFloat(fmt.Sprint(value[1]), 64)
			if at, ok := value[0].(float64); ok && err == nil && !math.IsNaN(y) && !math.IsInf(y, 0) {
				s.points = append(s.points, [2]float64{at - float64(from.Unix()), y})
			}
		}
		found = append(found, s)
	}
	slices.SortFunc(found, func(a, b series) int { return strings.Compare(a.name, b.name) })
	return found
}

// draw draws the panels of the dashboard at their places, as an SVG image.
func draw(panels []dashboardPanel, lines [][]series, seconds float64, note string) string {
	var body strings.Builder
	height := 0
	for i, p := range panels {
		height = max(height, head+(p.GridPos.Y+p.GridPos.H)*row)
		drawPanel(&body, p, lines[i], seconds)
	}
	width := 24 * column
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="10">`+"\n", width, height)
	b.WriteString("<style>text{fill:#222}.t{font-size:15px;font-weight:bold}.p{font-size:12px;font-weight:bold}.s{fill:#555;font-size:11px}.g{stroke:#ddd}.l{fill:none;stroke-width:1.3}</style>\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="8" y="22" class="t">Leasehold</text><text x="8" y="42" class="s">%s</text>`+"\n", html.EscapeString(note))
	b.WriteString(body.String())
	b.WriteString("</svg>\n")
	return b.String()
}

func drawPanel(b *strings.Builder, p dashboardPanel, lines []series, seconds float64) {
	x, y := p.GridPos.X*column, head+p.GridPos.Y*row
	w, h := p.GridPos.W*column, p.GridPos.H*row
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#bbb"/>`+"\n", x+3, y+3, w-6, h-6)
	fmt.Fprintf(b, `<text x="%d" y="%d" class="p">%s</text>`+"\n", x+10, y+18, html.EscapeString(p.Title))
	left, top, wide, high := float64(x+leftRoom), float64(y+topRoom), float64(w-leftRoom-14), float64(h-topRoom-footRoom)
	most := 0.0
	for _, l := range lines {
		for _, point := range l.points {
			most = max(most, point[1])
		}
	}
	scale := upTo(most)
	for i := range 3 {
		part := float64(i) / 2
		at := top + high*(1-part)
		fmt.Fprintf(b, `<path d="M%.0f %.1fh%.0f" class="g"/><text x="%.0f" y="%.1f" text-anchor="end">%s</text>`+"\n", left, at, wide, left-4, at+3, strconv.FormatFloat(scale*part, 'g', 3, 64))
	}
	for i := range 4 {
		at := seconds * float64(i) / 3
		fmt.Fprintf(b, `<text x="%.0f" y="%.1f" text-anchor="middle">%d:%02d</text>`+"\n", left+wide*float64(i)/3, top+high+12, int(at)/60, int(at)%60)
	}
	legend := left
	for i, l := range lines {
		colour := lineColours[i%len(lineColours)]
		fmt.Fprintf(b, `<path class="l" stroke="%s" d="`, colour)
		largest, move := 0.0, true
		for j, point := range l.points {
			if j > 0 && point[0]-l.points[j-1][0] > 1.5 { // there is no value in between
				move = true
			}
			command := "L"
			if move {
				command, move = "M", false
			}
			largest = max(largest, point[1])
			fmt.Fprintf(b, "%s%.0f,%.1f", command, left+wide*point[0]/seconds, top+high*(1-point[1]/scale))
		}
		b.WriteString("\"/>\n")
		if largest > 0 || len(lines) <= 4 { // no room to name them all
			fmt.Fprintf(b, `<text x="%.0f" y="%.1f" style="fill:%s">%s</text>`+"\n", legend, top+high+25, colour, html.EscapeString(l.name))
			legend += float64(len(l.name))*5.6 + 12
		}
	}
}

// upTo returns the end of a scale for values up to most.
func upTo(most float64) float64 {
	if most <= 0 {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for _, n := range []float64{1, 2, 5, 10} {
		if most <= n*step {
			return n * step
		}
	}
	return most
}

// Each panel of the dashboard can be drawn from what a Prometheus scraped of two processes.
// For the picture of the documentation, one of them is cut off from the server for a while.
func TestPicture(t *testing.T) {
	t.Parallel() // it mostly waits
	defer http.DefaultClient.CloseIdleConnections()
	server := redistest.Start(t).Addr()
	proxy := faultproxy.New(t, server)
	first, second := contender(t, "redis://"+server), contender(t, "redis://"+proxy.Addr())
	names := strings.NewReplacer(first, "first", second, "second", server, "server", proxy.Addr(), "server by the proxy")
	prometheus := startPrometheus(t, first, second)
	for deadline := time.Now().Add(patience); len(query(t, prometheus, "count(leasehold_leases) == 2")) == 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("Prometheus has not scraped both processes after %v", patience)
		}
	}

	from, interval := time.Now(), "20s"
	if *pictureFile != "" {
		interval = "10s"
		for _, fault := range []func(){func() {}, proxy.Blackhole, proxy.Pass} {
			fault()
			time.Sleep(40 * time.Second)
		}
	}
	panels := dashboardPanels(t)
	// lines returns the lines of the panels until now, and the number of panels with any.
	lines := func() (lines [][]series, drawn int) {
		for _, p := range panels {
			var all []series
			for _, target := range p.Targets {
				expr := strings.NewReplacer("$__rate_interval", interval, "$job", ".+").Replace(target.Expr)
				all = append(all, queryRange(t, prometheus, expr, target.LegendFormat, from, time.Now())...)
			}
			points := 0
			for i := range all {
				all[i].name = names.Replace(all[i].name)
				points += len(all[i].points)
			}
			drawn += min(points, 1)
			lines = append(lines, all)
		}
		return lines, drawn
	}
	found, drawn := lines()
	for deadline := time.Now().Add(patience); drawn < len(panels); found, drawn = lines() {
		if time.Now().After(deadline) {
			t.Fatalf("of %d panels, %d have data after a minute, want all", len(panels), drawn)
		}
		time.Sleep(200 * time.Millisecond)
	}

	picture := draw(panels, found, time.Since(from).Seconds(), "Drawn by \"make dashboard\" from the queries of dashboard.json, not by Grafana. Two processes contend for a lock. The second has no network from 0:40 to 1:20.")
	if err := xml.Unmarshal([]byte(picture), new(struct{})); err != nil {
		t.Error(err)
	}
	for _, p := range panels {
		if !strings.Contains(picture, html.EscapeString(p.Title)) {
			t.Errorf("the picture lacks the panel %q", p.Title)
		}
	}
	if *pictureFile != "" {
		if err := os.WriteFile(*pictureFile, []byte(picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
