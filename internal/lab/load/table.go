package load

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Row is a line of a table: a summary, with figures collected from other
// processes.
type Row struct {
	Name string // of what was measured; a table without any has no such column
	Summary
	ServerCPU time.Duration // per operation, all servers together
	Commands  float64       // per operation, all servers together
}

// column is one column of a table. It is left out if no row has text for it.
type column struct {
	head string
	text func(Row) string
}

var columns = []column{
	{"", func(r Row) string { return r.Name }},
	{"GOROUTINES", func(r Row) string {
		if r.Goroutines == 0 {
			return ""
		}
		return fmt.Sprint(r.Goroutines)
	}},
	{"LOCK+UNLOCK/S", func(r Row) string { return Thousands(r.PerSecond) }},
	{"LOCK P50", func(r Row) string { return Micros(r.LockP50) }},
	{"P99", func(r Row) string { return Micros(r.LockP99) }},
	{"UNLOCK P50", func(r Row) string { return Micros(r.UnlockP50) }},
	{"P99", func(r Row) string { return Micros(r.UnlockP99) }},
	{"CLIENT CPU", func(r Row) string { return Micros(r.CPU) }},
	{"SERVER CPU", func(r Row) string { return Micros(r.ServerCPU) }},
	{"COMMANDS", func(r Row) string { return Small(r.Commands) }},
	{"ALLOCS", func(r Row) string { return Small(r.Allocs) }},
	{"ERRORS", func(r Row) string {
		if r.Errors == 0 {
			return ""
		}
		return fmt.Sprint(r.Errors)
	}},
}

// used returns the columns that have text for at least one row.
func used(rows []Row) []column {
	var some []column
	for _, c := range columns {
		for _, r := range rows {
			if c.text(r) != "" {
				some = append(some, c)
				break
			}
		}
	}
	return some
}

// cells returns the texts of a row.
func (r Row) cells(columns []column) []string {
	texts := make([]string, len(columns))
	for i, c := range columns {
		if texts[i] = c.text(r); texts[i] == "" {
			texts[i] = "-"
		}
	}
	return texts
}

// Print writes the rows as text. CPU, commands and allocations are per operation.
func Print(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	columns := used(rows)
	for _, c := range columns {
		fmt.Fprintf(t, "%s\t", c.head)
	}
	fmt.Fprintln(t)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r.cells(columns), "\t")+"\t")
	}
	return t.Flush()
}

// Markdown writes the rows as a table of a document.
func Markdown(w io.Writer, rows []Row) error {
	columns := used(rows)
	var b strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&b, "| %s ", strings.ToLower(c.head))
	}
	b.WriteString("|\n")
	for i := range columns {
		if i == 0 {
			b.WriteString("| --- ")
		} else {
			b.WriteString("| ---: ")
		}
	}
	b.WriteString("|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r.cells(columns), " | "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Thousands formats a number to three digits, or to units, with commas.
func Thousands(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.1f", x)
	}
	s := fmt.Sprintf("%.0f", x)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Micros formats a duration in microseconds, or in a larger unit if it is long.
// It returns "" for zero.
func Micros(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%.1fµs", d.Seconds()*1e6)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.0fµs", d.Seconds()*1e6)
	case d < time.Second:
		return fmt.Sprintf("%.0fms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

// Small formats a number with one decimal. It returns "" for zero.
func Small(x float64) string {
	if x <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", x)
}
