package report

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// What is between these lines of the document is made anew by every run that has
// measured it.
const (
	begin = "<!-- figures: made by \"make figures\", not by hand -->"
	end   = "<!-- end of figures -->"

	beginContention = "<!-- contention: made by \"make figures\", not by hand -->"
	endContention   = "<!-- end of contention -->"
)

// Document puts the run into the document at path, whose other text stays, and
// so does what the run has not measured.
func Document(path string, r *Run) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(r.Cells)+len(r.Held) > 0 {
		if text, err = replace(text, begin, end, figures(r)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if r.Contended() {
		if text, err = replace(text, beginContention, endContention, contention(r)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return os.WriteFile(path, text, 0o644)
}

// replace puts figures between two lines of a text.
func replace(text []byte, begin, end, figures string) ([]byte, error) {
	before, rest, ok := bytes.Cut(text, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !ok || !ended {
		return nil, fmt.Errorf("no place for figures: it needs a line %q and a line %q", begin, end)
	}
	return slices.Concat(before, []byte(begin+"\n\n"+figures+end), after), nil
}

// measuredOn says when and on what.
func measuredOn(r *Run) string {
	return fmt.Sprintf("Measured on %s within %v, %v for each measurement, on %s.%s\n\nVersions: %s.\n",
		r.Started.Format("2 January 2006"), r.Took.Round(time.Minute), r.For, r.Machine, shared(r), versions(r))
}

// contention is what was measured of locks that everybody wants.
func contention(r *Run) string {
	var b strings.Builder
	b.WriteString("![Changes of holder per second](performance/contention.svg)\n\n" + measuredOn(r) + "\nRaw results: [performance/contention.json](performance/contention.json).\n")
	if all := aimsOf(r); len(all) > 0 {
		b.WriteString("\n### Contention: what is aimed at\n\n" + markdownOf(aimTable(all)))
	}
	for _, t := range contestTables(r) {
		fmt.Fprintf(&b, "\n### %s\n\n%s", t.title, markdownOf(t.rows))
	}
	b.WriteString("\n")
	return b.String()
}

func figures(r *Run) string {
	m := mediansOf(r)
	var b strings.Builder
	b.WriteString(measuredOn(r))
	for _, t := range titles[:2] {
		if table := ratioTable(m, t.scenario); len(table) > 1 {
			fmt.Fprintf(&b, "\n### Ratios: %s\n\nIn brackets what is aimed at.\n\n%s", lower(t.title), markdownOf(table))
		}
	}
	for _, t := range titles {
		numbers := m.goroutines(t.scenario)
		if len(numbers) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n", t.title)
		for _, n := range numbers {
			if rows := m.table(t.scenario, n, anyKind); len(rows) > 0 {
				fmt.Fprintf(&b, "\n%s, %d rounds:\n\n", plural(n), rows[0].Rounds)
				load.Markdown(&b, rows)
			}
		}
	}
	if len(r.Held) > 0 {
		b.WriteString("\n### Leases that are just held\n\n")
		for _, h := range r.Held {
			fmt.Fprintf(&b, "- %s\n", heldLine(h))
		}
	}
	b.WriteString("\n")
	return b.String()
}

// quietLoad is a load average that a machine has which nobody else uses.
const quietLoad = 0.5

// shared warns of figures from a machine that others used, too.
func shared(r *Run) string {
	first, _, _ := strings.Cut(r.LoadOff, " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil || load < quietLoad {
		return ""
	}
	return fmt.Sprintf(" **Others used the machine at the same time:** its load average was %s before anything was started, where that of a quiet one is near 0. "+
		"Figures are lower than they could be, and rounds far apart; ratios are to be trusted more, and not to the second digit.", first)
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func kindLabel(name string) string {
	if k, ok := locks.Named(name); ok {
		return k.Label
	}
	return name
}

func versions(r *Run) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		all = append(all, name+" "+r.Versions[name])
	}
	return strings.Join(all, ", ")
}
