// Package report keeps what was measured and shows it: as JSON, as tables, as
// ratios, as charts, and in the document that has all of them.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cell"
	"github.com/leasehold-dev/leasehold/bench/contend"
)

// Scenarios.
const (
	Healthy = "healthy"
	Awake   = "awake"  // healthy, and no processor goes to sleep
	Frozen  = "frozen" // one of five servers stands still
	Dead    = "dead"   // two of five servers are gone
	Three   = "three"  // three servers, for comparison with two dead of five

	Contended = "contended" // one lock that all processes want
	Inside    = "inside"    // one lock that all goroutines of a process want
	Waiting   = "waiting"   // for a lock that somebody else keeps
	Far       = "far"       // contended, and the servers are far away
	First     = "first"     // in the queue, and gone
	Shared    = "shared"    // a semaphore that all processes want, beside a mutex
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

	Contests  []Contest
	Firsts    []FirstInLine `json:",omitempty"`
	Hold      time.Duration `json:",omitempty"` // of what all want, each time
	RoundTrip time.Duration `json:",omitempty"` // what being far away really was
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

// Contest is one measurement of one lock that everybody wants.
type Contest struct {
	Scenario string
	Kind     string
	Round    int
	contend.Figures
}

// FirstInLine is how long it took until a lock was granted again after its release, if
// something had happened to the first waiter.
type FirstInLine struct {
	Kind  string
	Round int
	Fate  string
	TTL   time.Duration // of the places in the queue
	Took  time.Duration
	// Failed is why nobody had it, if so.
	Failed string `json:",omitempty"`
}

// Contended reports whether anything was measured of locks that everybody wants.
func (r *Run) Contended() bool { return len(r.Contests)+len(r.Firsts) > 0 }

// Apart are the parts of a run that are kept in files of their own: what was
// measured of locks that nobody else wants, and of those that everybody wants.
// A part without measurements is nil.
func (r *Run) Apart() (alone, contended *Run) {
	if len(r.Cells)+len(r.Held) > 0 {
		part := *r
		part.Contests, part.Firsts, part.Hold, part.RoundTrip = nil, nil, 0, 0
		alone = &part
	}
	if r.Contended() {
		part := *r
		part.Cells, part.Held = nil, nil
		contended = &part
	}
	return alone, contended
}

// Write keeps the run in a file, a measurement a line.
func (r *Run) Write(path string) error {
	head := *r
	head.Cells, head.Contests = nil, nil
	text, err := json.MarshalIndent(head, "", " ")
	if err != nil {
		return err
	}
	if text, err = insert(text, "Cells", r.Cells); err != nil {
		return err
	}
	if text, err = insert(text, "Contests", r.Contests); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// insert puts a list where there is none, with an element a line.
func insert[T any](text []byte, name string, list []T) ([]byte, error) {
	if list == nil {
		return text, nil
	}
	before, after, ok := bytes.Cut(text, []byte(`"`+name+`": null`))
	if !ok {
		return nil, fmt.Errorf("no place for %s", name)
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(`"` + name + `": [`)
	for i, element := range list {
		line, err := json.Marshal(element)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n  ")
		b.Write(line)
	}
	b.WriteString("\n ]")
	b.Write(after)
	return b.Bytes(), nil
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
