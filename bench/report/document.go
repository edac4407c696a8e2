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

// Document replaces the text between these lines if a run has measured it.
const (
	begin = "<!-- figures: made by \"make figures\", not by hand -->"
	end   = "<!-- end of figures -->"

	beginContention = "<!-- contention: made by \"make figures\", not by hand -->"
	endContention   = "<!-- end of contention -->"
)

// Document writes the figures of the run into the document at path. All other
// text stays, and so do figures that the run has not measured. Our own aims are
// not written: they are for developers of Leasehold, and Print shows them.
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

// replace returns text with figures between its lines begin and end.
func replace(text []byte, begin, end, figures string) ([]byte, error) {
	before, rest, ok := bytes.Cut(text, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !ok || !ended {
		return nil, fmt.Errorf("no place for figures: the lines %q and %q are missing", begin, end)
	}
	return slices.Concat(before, []byte(begin+"\n\n"+figures+end), after), nil
}

// measuredOn says when and on which machine the run was.
func measuredOn(r *Run) string {
	return fmt.Sprintf("Measured on %s in %v, %v for each measurement, on %s.%s\n\nVersions: %s.\n",
		r.Started.Format("2 January 2006"), r.Took.Round(time.Minute), r.For, r.Machine, shared(r), versions(r))
}

// contention returns the figures of contended locks.
func contention(r *Run) string {
	var b strings.Builder
	b.WriteString(measuredOn(r) + "\nRaw results: [contention.json](contention.json).\n")
	if all := aimsOf(r); len(all) > 0 {
		b.WriteString("\n### Contention: ratios and other key figures\n\n" + markdownOf(aimTable(all, false)))
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
		if table := ratioTable(m, t.scenario, false); len(table) > 1 {
			fmt.Fprintf(&b, "\n### Ratios: %s\n\n%s", lower(t.title), markdownOf(table))
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
		b.WriteString("\n### Leases that are only held\n\n")
		for _, h := range r.Held {
			fmt.Fprintf(&b, "- %s\n", heldLine(h))
		}
	}
	b.WriteString("\n")
	return b.String()
}

// quietLoad is the largest load average of an idle machine.
const quietLoad = 0.5

// shared returns a warning if other programs used the machine during the run.
func shared(r *Run) string {
	first, _, _ := strings.Cut(r.LoadOff, " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil || load < quietLoad {
		return ""
	}
	return fmt.Sprintf(" **Other programs used the machine at the same time:** its load average was %s before the run, and is near 0 on an idle machine. "+
		"So absolute figures are too low, and rounds differ widely. Trust the ratios more, but not to the second digit.", first)
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
