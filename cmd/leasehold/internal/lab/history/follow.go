package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Follower reads a history while it is being written.
type Follower struct {
	path   string
	f      *os.File
	rest   []byte // of a line that is not complete yet
	number int
}

// Follow prepares to read the file at path, which need not exist yet.
func Follow(path string) *Follower { return &Follower{path: path} }

// Read calls each, in order, with the events that were added since the last call.
// It leaves an unfinished last line for later: its writer may still be writing
// it, or was killed.
func (f *Follower) Read(each func(Event)) error {
	if f.f == nil {
		file, err := os.Open(f.path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		f.f = file
	}
	more, err := io.ReadAll(f.f)
	f.rest = append(f.rest, more...)
	for err == nil {
		line, rest, complete := bytes.Cut(f.rest, []byte("\n"))
		if !complete {
			break
		}
		f.rest = rest
		f.number++
		var e Event
		if err = json.Unmarshal(line, &e); err == nil {
			each(e)
		}
	}
	if err != nil {
		return fmt.Errorf("%s:%d: %w", f.path, f.number, err)
	}
	return nil
}

// Close closes the file.
func (f *Follower) Close() {
	if f.f != nil {
		f.f.Close()
	}
}
