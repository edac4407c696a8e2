package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/leasehold-dev/leasehold/fence"
)

// Resource is what the locks protect: a file to which all holders append. The
// system orders the lines, independently of any clock. It accepts every write,
// even those that a resource which checks tokens would refuse.
type Resource struct{ f *os.File }

// ID identifies an attempt.
type ID struct {
	Proc int `json:"proc"` // from 1
	Life int `json:"life"` // of that process: 1, and one more after each death
	G    int `json:"g"`    // goroutine
	N    int `json:"n"`    // attempt of the goroutine, from 1
}

func (id ID) String() string { return fmt.Sprintf("%d.%d/%d#%d", id.Proc, id.Life, id.G, id.N) }

// A Write is one line of the resource.
type Write struct {
	By     ID          `json:"by"`
	Lock   int         `json:"lock"`
	Slot   int64       `json:"slot,omitempty"`
	Number int         `json:"write"` // among those of the attempt, from 1
	Token  fence.Token `json:"token"`
}

// OpenResource opens the file, and creates it if it does not exist.
func OpenResource(path string) (*Resource, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Resource{f: f}, nil
}

// Write appends one write. It is safe for concurrent use.
func (r *Resource) Write(w Write) error { return writeLine(r.f, w) }

// Close closes the file.
func (r *Resource) Close() error { return r.f.Close() }

// ReadResource returns the writes in the order in which they arrived.
func ReadResource(path string) ([]Write, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []Write
	for lines := bufio.NewScanner(f); ; {
		if !lines.Scan() {
			return all, lines.Err()
		}
		var w Write
		// A writer that was killed in the middle leaves a line that is none.
		if json.Unmarshal(lines.Bytes(), &w) == nil {
			all = append(all, w)
		}
	}
}
