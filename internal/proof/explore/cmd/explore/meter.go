package main

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/proof/explore"
)

// sizes says about how many states each row has: a name and
// a number on each line.
//
//go:embed sizes.txt
var sizes string

// sizeOf returns the expected number of states of a row, or 0 if sizes.txt does not have it.
func sizeOf(row explore.Row) int {
	for line := range strings.Lines(sizes) {
		if name, n, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == row.Name {
			size, _ := strconv.Atoi(n)
			return size
		}
	}
	return 0
}

// meter estimates how long the rest of the searches takes.
type meter struct {
	rows, done      int
	planned, behind int // states, of all rows and of those that are done
	began, told     time.Time
}

func newMeter(rows []explore.Row) *meter {
	m := &meter{rows: len(rows), began: time.Now(), told: time.Now()}
	for _, r := range rows {
		m.planned += sizeOf(r)
	}
	return m
}

// finish counts a row as done, and corrects the planned total by the size that it had.
func (m *meter) finish(row explore.Row, states int) {
	m.done++
	m.behind += states
	m.planned += states - sizeOf(row)
}

// line returns the progress, with so many states of the present row.
func (m *meter) line(row explore.Row, states, depth int, now time.Time) string {
	seen := m.behind + states
	rate := float64(seen) / max(now.Sub(m.began).Seconds(), 0.001)
	left := time.Duration(float64(max(0, m.planned-seen)) / max(rate, 1) * float64(time.Second))
	return fmt.Sprintf("%d of %d rows done, %.0f states a second, about %v left; at %s: %d states, depth %d",
		m.done, m.rows, rate, left.Round(time.Second), row.Name, states, depth)
}

// due reports whether to print a line, every few seconds.
func (m *meter) due(now time.Time) bool {
	if now.Sub(m.told) < 5*time.Second {
		return false
	}
	m.told = now
	return true
}
