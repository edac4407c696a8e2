// Package transcript checks stories: files with the events of a state machine and, indented
// below each event, its actions and its state. Text after # is for the reader.
package transcript

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the actions and states of the machine into testdata/*.txt")

// Teller replays one story at a time.
type Teller interface {
	// Begin reports whether the line begins a new machine, and makes it.
	Begin(line string) bool
	// Tell gives the machine the event of a line. It returns the actions of the machine,
	// and its state afterwards.
	Tell(line string) (actions []string, state string, err error)
}

// replay returns the story with the actions and states of the present machine.
func replay(t Teller, story string) (string, error) {
	var out strings.Builder
	begun := false
	for i, line := range strings.SplitAfter(story, "\n") {
		text := strings.TrimSpace(line)
		if strings.HasPrefix(line, "    ") { // recorded before
			continue
		}
		out.WriteString(line)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if t.Begin(text) {
			begun = true
			continue
		}
		if !begun {
			return "", fmt.Errorf("line %d: a story starts with a new machine", i+1)
		}
		actions, state, err := t.Tell(text)
		if err != nil {
			return "", fmt.Errorf("line %d: %v", i+1, err)
		}
		for _, a := range actions {
			fmt.Fprintf(&out, "    -> %s\n", a)
		}
		fmt.Fprintf(&out, "    %s\n", state)
	}
	return out.String(), nil
}

// Check replays each story in testdata and fails at the first line that differs.
// With -update it writes the present actions and states into the file instead.
func Check(t *testing.T, teller func() Teller) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := replay(teller(), string(want))
			if err != nil {
				t.Fatalf("%s:%v", file, err)
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
			for i := range max(len(gotLines), len(wantLines)) {
				if g, w := line(gotLines, i), line(wantLines, i); g != w {
					t.Fatalf("%s:%d:\ngot  %s\nwant %s", file, i+1, g, w)
				}
			}
		})
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(end)"
}
