//go:build unix

package cli

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/textfile"
)

// metricsIn returns the metrics of a lock in the only file of dir, which promtool accepts.
func metricsIn(t *testing.T, dir, lock string) map[string]float64 {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || !strings.HasSuffix(files[0].Name(), ".prom") {
		t.Fatalf("%v (%v), want one file of metrics", files, err)
	}
	if info, err := files[0].Info(); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the file has the mode %v (%v), want 0644: others have to read it", info.Mode(), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, files[0].Name()))
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = strings.NewReader(string(text))
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s\n%s", err, out, text)
	}
	all := map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^leasehold_run_(\w+)\{lock="(.*)"\} (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		if all[m[1]], err = strconv.ParseFloat(m[3], 64); err != nil || m[2] != lock {
			t.Errorf("the metric %q (%v), want a number of the lock %s", m[0], err, lock)
		}
	}
	return all
}

// Each run replaces the file. What succeeded last stays known over runs that failed or
// did not get the lock.
func TestTextfile(t *testing.T) {
	s, dir := newSite(t), t.TempDir()
	run := func(code int, args ...string) map[string]float64 {
		t.Helper()
		s.run(code, append([]string{"run", "x", "--textfile", dir}, args...)...)
		return metricsIn(t, dir, "x")
	}
	m := run(3, "--", "sh", "-c", "exit 3")
	if _, succeeded := m["last_success_timestamp_seconds"]; succeeded || m["exit_code"] != 3 || m["started"] != 1 {
		t.Errorf("after a failure: %v, want exit code 3 and no success", m)
	}
	m = run(0, "--", "true")
	success := m["last_success_timestamp_seconds"]
	if success != m["end_timestamp_seconds"] || success < 1e9 || m["exit_code"] != 0 || m["started"] != 1 || m["duration_seconds"] <= 0 || m["wait_seconds"] <= 0 {
		t.Errorf("after a success: %v, want exit code 0 and a success at the end", m)
	}
	page, err := os.ReadFile("../../../../docs/adapters.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile(`(?m)^    leasehold_run_(\w+)\{`).FindAllStringSubmatch(string(page), -1) {
		documented[name[1]] = true
	}
	if written := slices.Sorted(maps.Keys(m)); !slices.Equal(written, slices.Sorted(maps.Keys(documented))) {
		t.Errorf("after a success: the metrics %q, and docs/adapters.md lists %q", written, slices.Sorted(maps.Keys(documented)))
	}
	m = run(127, "--", "sh", "-c", "exit 127")
	if m["last_success_timestamp_seconds"] != success || m["exit_code"] != 127 {
		t.Errorf("after a failure that follows a success of %v: %v, want exit code 127 and the same success", success, m)
	}
	h := s.hold("x")
	m = run(0, "--try", "-E", "0", "--", "true")
	if m["last_success_timestamp_seconds"] != success || m["started"] != 0 || m["duration_seconds"] != 0 {
		t.Errorf("without the lock, after a success of %v: %v, want no start and the same success", success, m)
	}
	h.let()
	m = run(0, "--once-per", "1000h", "--", "true")
	if m["started"] != 1 {
		t.Errorf("the first run of a tick: %v, want it started", m)
	}
	if m = run(124, "--once-per", "1000h", "--", "true"); m["started"] != 0 || m["exit_code"] != 124 {
		t.Errorf("the second run of a tick: %v, want exit code 124 and no start", m)
	}
}

// Each name has its own file in the directory, and a label with the name.
func TestTextfileOfStrangeNames(t *testing.T) {
	s := newSite(t).plain()
	seen := map[string]bool{}
	for name, label := range map[string]string{
		"../up/and away": "../up/and away", ".._up_and_away": ".._up_and_away", `a"b\c`: `a\"b\\c`, "a\nb": `a\nb`, "\xff": "\uFFFD",
		strings.Repeat("x", 900): strings.Repeat("x", 900), strings.Repeat("x", 901): strings.Repeat("x", 901),
	} {
		dir := t.TempDir()
		s.run(0, "run", name, "--textfile", dir, "--", "true")
		if m := metricsIn(t, dir, label); m["exit_code"] != 0 || m["started"] != 1 {
			t.Errorf("%q: %v, want exit code 0 and a start", name, m)
		}
		file := textfile.Name(name)
		if seen[file] || len(file) > 200 || strings.ContainsAny(file, "/\n\"") {
			t.Errorf("%q has the file %q, want its own, with a short plain name", name, file)
		}
		seen[file] = true
	}
}

// A directory that is none is refused before the command runs. One that cannot be written
// costs a warning.
func TestTextfileNeedsItsDirectory(t *testing.T) {
	s, dir := newSite(t), t.TempDir()
	for _, none := range []string{filepath.Join(dir, "absent"), os.DevNull} {
		p := s.run(125, "run", "x", "--textfile", none, "--", "echo", "ran")
		if p.out.String() != "" || !strings.Contains(p.err.String(), "--textfile") {
			t.Errorf("stdout %q, stderr %q, want nothing on stdout and text with %q", p.out.String(), p.err.String(), "--textfile")
		}
	}
	p := s.run(3, "run", "x", "--textfile", dir, "--", "sh", "-c", "rmdir "+dir+"; exit 3")
	if !strings.Contains(p.err.String(), "metrics were not written") {
		t.Errorf("stderr %q, want text with %q", p.err.String(), "metrics were not written")
	}
}

// What stands in the place of the file is replaced, and keeps nobody waiting.
func TestTextfileInThePlaceOfAPipe(t *testing.T) {
	s, dir := newSite(t), t.TempDir()
	if out, err := exec.Command("mkfifo", filepath.Join(dir, textfile.Name("x"))).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.run(3, "run", "x", "--textfile", dir, "--", "sh", "-c", "exit 3")
	if m := metricsIn(t, dir, "x"); m["exit_code"] != 3 {
		t.Errorf("metrics %v, want exit code 3", m)
	}
}
