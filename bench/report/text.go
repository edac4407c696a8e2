package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// titles describe the scenarios to a reader.
var titles = []struct{ scenario, title string }{
	{Healthy, "All servers up"},
	{Awake, "All servers up, processors kept awake by spinners of idle priority"},
	{Frozen, "One of five servers frozen"},
	{Dead, "Two of five servers dead"},
	{Three, "Three servers, all up (to compare with two of five dead)"},
}

// Print writes all figures of the run as text, with our aims.
func Print(w io.Writer, r *Run) error {
	m := mediansOf(r)
	for _, t := range titles {
		for _, n := range m.goroutines(t.scenario) {
			rows := m.table(t.scenario, n, anyKind)
			if len(rows) == 0 {
				continue
			}
			fmt.Fprintf(w, "%s; %s; medians of %d rounds; CPU, commands and allocations per lock and unlock\n", t.title, plural(n), rows[0].Rounds)
			if err := load.Print(w, rows); err != nil {
				return err
			}
			fmt.Fprintln(w)
		}
	}
	for _, t := range titles[:2] {
		table := ratioTable(m, t.scenario, true)
		if len(table) < 2 {
			continue
		}
		fmt.Fprintf(w, "%s: ratios, with our aims in brackets\n", t.title)
		if err := printTable(w, table, 0); err != nil {
			return err
		}
	}
	for _, h := range r.Held {
		fmt.Fprintln(w, heldLine(h))
	}
	return printContention(w, r)
}

// printContention writes the figures of contended locks.
func printContention(w io.Writer, r *Run) error {
	for _, t := range contestTables(r) {
		fmt.Fprintf(w, "%s\n", t.title)
		if err := printTable(w, t.rows, tabwriter.AlignRight); err != nil {
			return err
		}
	}
	if all := aimsOf(r); len(all) > 0 {
		fmt.Fprintln(w, "Contention: our aims")
		if err := printTable(w, aimTable(all, true), 0); err != nil {
			return err
		}
	}
	return nil
}

// Overlapped returns an error if a lock ever had two holders at once.
func Overlapped(r *Run) error {
	for _, c := range r.Contests {
		if c.Overlaps > 0 {
			return fmt.Errorf("%s is not a lock: with %s, %d turns began while another holder had it; the first: %s", c.Kind, contendersOf(c.Processes, c.Goroutines), c.Overlaps, c.Overlap)
		}
	}
	return nil
}

func printTable(w io.Writer, rows [][]string, flags uint) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', flags)
	for _, line := range rows {
		fmt.Fprintln(tw, strings.Join(line, "\t")+"\t")
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

func heldLine(h Held) string {
	perLease := func(bytes uint64) uint64 { return bytes / uint64(max(h.Leases, 1)) }
	return fmt.Sprintf("%s leases of TTL %v held by one %s client: taken in %.1f s; %d bytes of heap each, %d of memory; the client uses %.1f %% of one core, the servers %.1f %%; %.0f commands a second; %d lost",
		load.Thousands(float64(h.Leases)), h.TTL, kindLabel(h.Kind), h.Took.Seconds(), perLease(h.Heap), perLease(h.Resident),
		100*h.ClientCPU.Seconds()/h.Window.Seconds(), 100*h.ServerCPU.Seconds()/h.Window.Seconds(), float64(h.Commands)/h.Window.Seconds(), h.Lost)
}
