// Package transcript checks stories: files with the events of a state machine and, indented
// below each event, its actions and its state. Text after # is for the reader.
package transcript

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the actions and states of the machine into testdata/*.txt")

// Check replays each story in testdata and fails at the first line that differs.
// With -update it writes the present actions and states into the file instead.
func Check(t *testing.T, replay func(story string) (string, error)) {
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
			got, err := replay(string(want))
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
