//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/stories"
)

func TestLabList(t *testing.T) {
	text := newSite(t).run(0, "lab", "list").out.String()
	all := stories.All()
	if strings.Count(text, "\n") != len(all) {
		t.Errorf("want %d stories, listed are:\n%s", len(all), text)
	}
	for _, story := range all {
		if !strings.Contains(text, story.Name+" ") || !strings.Contains(text, story.Title) {
			t.Errorf("story %s is not listed with its title:\n%s", story.Name, text)
		}
	}
	narrow(t, text)
}

// narrow fails the test for lines that do not fit into 80 columns.
func narrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("a line of %d columns, want 80 at most: %s", n, line)
		}
	}
}

// The commands of docs/stories.md work as they stand there.
func TestStoryCommands(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/stories.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- run -->\n```sh\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d blocks to run in docs/stories.md, want 1", len(blocks))
	}
	s := newSite(t)
	s.env = append(s.env, "PATH="+filepath.Dir(binary)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for line := range strings.Lines(string(blocks[0][1])) {
		p := s.exec("/bin/sh", "-eu", "-c", line)
		p.in.Close()
		p.wants(0)
		narrow(t, p.out.String())
	}
	if left := processesLeft("story-client"); len(left) > 0 {
		t.Errorf("processes %q are left, want none", left)
	}
}

func TestLabRunTellsTheStory(t *testing.T) {
	p := newSite(t).run(0, "lab", "run", "delete")
	out := p.out.String()
	for _, want := range []string{"  WEAK  ", "DEL lock -> 1", "\n  FAILED: ", "  OURS  ", "\n  HELD: "} {
		before, rest, ok := strings.Cut(out, want)
		if !ok {
			t.Fatalf("%q is missing after\n%s\nin\n%s", want, before, p.out.String())
		}
		out = rest
	}
	if last := lastLineOf(out); last != "PASS: as expected: 1 of 1 (delete)" {
		t.Errorf("last line: %s, want \"PASS: as expected: 1 of 1 (delete)\"", last)
	}
}

// Without a Redis server, lab run says what to install, once.
func TestLabRunWithoutRedis(t *testing.T) {
	s := newSite(t)
	s.env = append(s.env, "PATH="+t.TempDir())
	p := s.run(125, "lab", "run", "all")
	if says := p.err.String(); strings.Count(says, "apt-get install -y redis-server") != 1 {
		t.Errorf("stderr: %s, want the command that installs the server, once", says)
	}
	if last := lastLineOf(p.out.String()); !strings.HasPrefix(last, "NONE: could not be replayed: ") || strings.Contains(last, "clock-jump") {
		t.Errorf("last line: %s, want %q at the beginning and no %q", last, "NONE: could not be replayed: ", "clock-jump")
	}
}

// One that is cut short ends at once, and leaves no process.
func TestLabRunCutShort(t *testing.T) {
	p := newSite(t).start("lab", "run", "all")
	p.says(&p.out, "SETNX lock A")
	p.signal(syscall.SIGINT)
	p.wants(128 + int(syscall.SIGINT))
	if left := processesLeft("story-client"); len(left) > 0 {
		t.Errorf("processes %q are left, want none", left)
	}
}
