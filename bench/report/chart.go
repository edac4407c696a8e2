package report

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// chart has a line for each implementation, in groups, and a mark in it for each number.
// All marks share one logarithmic scale, so any two of them can be compared.
type chart struct {
	title  string
	unit   string
	fewer  bool // less is better
	kinds  []locks.Kind
	series []string // what the marks of a line stand for, at most as many as shapes
	// found returns the figure of a kind for a series, and whether it was measured.
	found  func(k locks.Kind, series int) (float64, bool)
	rounds string // what the figures are of several rounds, as the first words of the note
	cpus   string // of the machine
}

// groups divide the implementations by what they need.
var groups = []struct {
	title string
	which func(locks.Kind) bool
}{
	{"A majority of five Redis servers", func(k locks.Kind) bool { return k.Engine == locks.Redis && k.Nodes == 5 }},
	{"One Redis server", func(k locks.Kind) bool { return k.Engine == locks.Redis && k.Nodes == 1 }},
	{"One server of another kind", func(k locks.Kind) bool { return k.Engine != locks.Redis && k.Engine != locks.File }},
	{"A file that all processes share", func(k locks.Kind) bool { return k.Engine == locks.File }},
}

// Sizes and looks of a chart.
const (
	chartWidth  = 720 * vg.Length(1)
	lineHeight  = 15 * vg.Length(1)
	chartMargin = 10 * vg.Length(1)
	legendWidth = 165 * vg.Length(1)
	aroundLines = 96 * vg.Length(1) // title, scale and note
	resolution  = 144               // dots per inch
)

var (
	colours = map[locks.Role]color.Color{
		locks.Ours: color.RGBA{0x0b, 0x7a, 0x5c, 0xff}, locks.Peer: color.RGBA{0x6a, 0x70, 0x85, 0xff}, locks.Floor: color.RGBA{0xcf, 0xa1, 0x3a, 0xff},
	}
	roleNames = map[locks.Role]string{locks.Ours: "Leasehold", locks.Peer: "other libraries", locks.Floor: "by hand"}
	shapes    = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, diamond{}}
	faint     = color.Gray{0xdd}
	dark      = color.Gray{0x33}
)

// diamond is a filled square that stands on a corner.
type diamond struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (diamond) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	var p vg.Path
	p.Move(vg.Point{X: at.X, Y: at.Y + style.Radius})
	p.Line(vg.Point{X: at.X + style.Radius, Y: at.Y})
	p.Line(vg.Point{X: at.X, Y: at.Y - style.Radius})
	p.Line(vg.Point{X: at.X - style.Radius, Y: at.Y})
	p.Close()
	c.SetColor(style.Color)
	c.Fill(p)
}

// chartLine is a line of a chart: a kind and its figures, or the title of a group.
type chartLine struct {
	label   string
	role    locks.Role // empty for the title of a group
	figures []float64  // NaN where nothing was measured
}

// lines returns the lines from top to bottom. In each group the best is first, by the
// last figure.
func (c chart) lines() []chartLine {
	var all []chartLine
	for _, g := range groups {
		var group []chartLine
		for _, k := range c.kinds {
			if !g.which(k) {
				continue
			}
			line := chartLine{label: shortLabel(k), role: k.Role}
			measured := false
			for i := range c.series {
				x, ok := c.found(k, i)
				if !ok {
					x = math.NaN()
				}
				measured = measured || ok
				line.figures = append(line.figures, x)
			}
			if measured {
				group = append(group, line)
			}
		}
		if len(group) == 0 {
			continue
		}
		slices.SortStableFunc(group, func(a, b chartLine) int {
			last := len(c.series) - 1
			if c.fewer {
				a, b = b, a
			}
			return cmp.Compare(b.figures[last], a.figures[last])
		})
		all = append(append(all, chartLine{label: g.title}), group...)
	}
	return all
}

// scale returns powers of ten around all figures. A figure of zero has no place on a
// logarithmic scale; it is drawn as a ring at the least power.
func scale(lines []chartLine) (least, most float64) {
	least, most = math.Inf(1), 0
	for _, l := range lines {
		for _, x := range l.figures {
			if x > 0 {
				least, most = min(least, x), max(most, x)
			}
		}
	}
	if most == 0 {
		return 1, 10
	}
	return math.Pow(10, math.Floor(math.Log10(least))), math.Pow(10, math.Ceil(math.Log10(most*1.05)))
}

// png draws the chart as an image, which looks the same whatever fonts a reader has.
func (c chart) png() ([]byte, error) {
	if len(c.series) > len(shapes) {
		return nil, fmt.Errorf("%q: there are %d numbers (%s), and marks for %d", c.title, len(c.series), strings.Join(c.series, ", "), len(shapes))
	}
	lines := c.lines()
	least, most := scale(lines)
	p := plot.New()
	better := ": more is better"
	if c.fewer {
		better = ": fewer is better"
	}
	p.Title.Text, p.X.Label.Text = c.title, c.unit+better
	p.Title.Padding = vg.Points(8)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = least, most, -0.5, float64(len(lines))-0.5
	p.Y.LineStyle.Width, p.Y.Tick.LineStyle.Width, p.Y.Tick.Length = 0, 0, 0
	for _, s := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		s.Font.Variant, s.Color = "Sans", dark
	}
	p.Title.TextStyle.Font.Weight, p.Title.TextStyle.Font.Size = boldly, vg.Points(13)
	p.X.Label.TextStyle.Font.Size, p.X.Tick.Label.Font.Size, p.Y.Tick.Label.Font.Size = vg.Points(9), vg.Points(9), vg.Points(10)
	grid := plotter.NewGrid()
	grid.Horizontal.Width, grid.Vertical.Color = 0, faint
	p.Add(grid)

	var names []plot.Tick
	for i, line := range lines {
		y := float64(len(lines) - 1 - i)
		if line.role == "" {
			if err := addTitle(p, line.label, least, y); err != nil {
				return nil, err
			}
			continue
		}
		names = append(names, plot.Tick{Value: y, Label: line.label})
		if err := addLine(p, line, least, y); err != nil {
			return nil, err
		}
	}
	p.Y.Tick.Marker = plot.ConstantTicks(names)

	canvas := vgimg.NewWith(vgimg.UseWH(chartWidth, aroundLines+lineHeight*vg.Length(len(lines))), vgimg.UseDPI(resolution))
	area := draw.Crop(draw.New(canvas), chartMargin, -chartMargin, chartMargin, -chartMargin)
	note := p.X.Label.TextStyle
	note.XAlign, note.YAlign = draw.XLeft, draw.YBottom
	area.FillText(note, area.Min, c.note(lines))
	p.Draw(draw.Crop(area, 0, -legendWidth, 1.5*lineHeight, 0))
	legend, err := c.legend(lines, p.Legend.TextStyle)
	if err != nil {
		return nil, err
	}
	legend.Draw(draw.Crop(area, chartWidth-2*chartMargin-legendWidth+chartMargin, 0, 0, -vg.Points(24)))
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// note says how to read the chart.
func (c chart) note(lines []chartLine) string {
	note := c.rounds + ". Each line of the scale is ten times the one before."
	if slices.ContainsFunc(lines, func(l chartLine) bool { return slices.Contains(l.figures, 0) }) {
		note += " A ring is none at all."
	}
	return note + " In each group, the best is first (" + c.series[len(c.series)-1] + "). " + c.cpus + "."
}

// boldly is the weight of titles.
const boldly = xfont.WeightBold

// addTitle writes the title of a group where its line would be.
func addTitle(p *plot.Plot, title string, x, y float64) error {
	l, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: x, Y: y}}, Labels: []string{title}})
	if err != nil {
		return err
	}
	style := &l.TextStyle[0]
	style.Font.Variant, style.Font.Weight, style.Font.Size, style.Color, style.YAlign = "Sans", boldly, vg.Points(10), dark, draw.YCenter
	l.Offset.X = vg.Points(4)
	p.Add(groupTitle{l})
	return nil
}

// groupTitle is a title that may be longer than the scale: the library would shorten the
// scale until it fits.
type groupTitle struct{ labels *plotter.Labels }

// Plot implements plot.Plotter.
func (t groupTitle) Plot(c draw.Canvas, p *plot.Plot) { t.labels.Plot(c, p) }

// addLine draws the marks of a kind, and a thin line between the outermost.
func addLine(p *plot.Plot, line chartLine, least, y float64) error {
	var ends plotter.XYs
	for i, x := range line.figures {
		if math.IsNaN(x) {
			continue
		}
		shape := shapes[i]
		if x <= 0 {
			x, shape = least, draw.RingGlyph{}
		}
		at := plotter.XYs{{X: x, Y: y}}
		ends = append(ends, at...)
		mark, err := markOf(at, shape, colours[line.role])
		if err != nil {
			return err
		}
		p.Add(mark)
	}
	slices.SortFunc(ends, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	between, err := plotter.NewLine(plotter.XYs{ends[0], ends[len(ends)-1]})
	if err != nil {
		return err
	}
	between.Color, between.Width = colours[line.role], vg.Points(0.6)
	p.Add(between)
	return nil
}

func markOf(at plotter.XYs, shape draw.GlyphDrawer, c color.Color) (*plotter.Scatter, error) {
	mark, err := plotter.NewScatter(at)
	if err != nil {
		return nil, err
	}
	mark.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(3.6), Shape: shape}
	return mark, nil
}

// legend explains the shapes, and the colours that occur.
func (c chart) legend(lines []chartLine, style text.Style) (plot.Legend, error) {
	legend := plot.NewLegend()
	legend.Top, legend.Left, legend.TextStyle, legend.Padding, legend.ThumbnailWidth = true, true, style, vg.Points(3), vg.Points(14)
	legend.TextStyle.Font.Size = vg.Points(10)
	add := func(name string, shape draw.GlyphDrawer, of color.Color) error {
		mark, err := markOf(plotter.XYs{{}}, shape, of)
		if err == nil {
			legend.Add(name, mark)
		}
		return err
	}
	for i, name := range c.series {
		if err := add(name, shapes[i], dark); err != nil {
			return legend, err
		}
	}
	for _, role := range []locks.Role{locks.Ours, locks.Peer, locks.Floor} {
		if slices.ContainsFunc(lines, func(l chartLine) bool { return l.role == role }) {
			if err := add(roleNames[role], draw.CircleGlyph{}, colours[role]); err != nil {
				return legend, err
			}
		}
	}
	return legend, nil
}

// decades are the ticks of a logarithmic scale: a number at each power of ten, and at
// nothing between.
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(least, most float64) []plot.Tick {
	var all []plot.Tick
	for x := least; x <= most*1.001; x *= 10 {
		label := load.Thousands(x)
		if x < 100 {
			label = fmt.Sprintf("%g", x)
		}
		all = append(all, plot.Tick{Value: x, Label: label})
	}
	return all
}
