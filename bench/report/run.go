// Package report keeps what was measured and shows it: as JSON, as tables, as
// ratios, as a plot, and in the document that has all of them.
package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cell"
)

// Scenarios.
const (
	Healthy = "healthy"
	Awake   = "awake"  // healthy, and no processor goes to sleep
	Frozen  = "frozen" // one of five servers stands still
	Dead    = "dead"   // two of five servers are gone
	Three   = "three"  // three servers, for comparison with two dead of five
)

// Run is everything that was measured at one time.
type Run struct {
	Machine  Machine
	Versions map[string]string // of implementations and servers
	Started  time.Time
	Took     time.Duration
	Rounds   int
	For      time.Duration // each measurement
	Spinning bool          // all the time
	Short    bool          // a look whether it runs, not to be quoted
	LoadOff  string        // load average before anything was started
	Cells    []Cell
	Held     []Held
}

// Cell is one measurement.
type Cell struct {
	Scenario string
	Kind     string
	Round    int
	cell.Figures
}

// Held is what it cost an implementation to hold leases.
type Held struct {
	Kind string
	cell.HeldFigures
}

// Write keeps the run in a file, a cell a line.
func (r *Run) Write(path string) error {
	var b bytes.Buffer
	head := *r
	head.Cells = nil
	text, err := json.MarshalIndent(head, "", " ")
	if err != nil {
		return err
	}
	const empty = `"Cells": null`
	before, after, ok := bytes.Cut(text, []byte(empty))
	if !ok {
		return errors.New("no place for the cells")
	}
	b.Write(before)
	b.WriteString(`"Cells": [`)
	for i, c := range r.Cells {
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n  ")
		b.Write(line)
	}
	b.WriteString("\n ]")
	b.Write(after)
	b.WriteString("\n")
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// Read is the reverse of Write.
func Read(path string) (*Run, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Run{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
