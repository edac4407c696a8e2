//go:build unix

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// roles are the commands that tests run.
var roles = map[string]func(args []string) error{
	"section": section,
	"draw":    draw,
	"tells":   tells,
}

// section is a critical section: two at once would find each other's file.
func section(args []string) error {
	marker, log := args[0], args[1]
	f, err := os.OpenFile(marker, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("overlap: %w", err)
	}
	f.Close()
	time.Sleep(2 * time.Millisecond) // the work
	if err := appendLine(log, "section"); err != nil {
		return err
	}
	return os.Remove(marker)
}

// draw draws a number: reads the last one from a file, adds one, writes it back,
// and logs it.
func draw(args []string) error {
	counter, log := args[0], args[1]
	n := 0
	text, err := os.ReadFile(counter)
	if err == nil {
		n, err = strconv.Atoi(string(text))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	time.Sleep(20 * time.Millisecond) // the work, and no synchronisation: without a lock, another process reads meanwhile
	mine := fmt.Sprintf("%s.%d", counter, os.Getpid())
	if err := os.WriteFile(mine, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	if err := os.Rename(mine, counter); err != nil { // never half written
		return err
	}
	return appendLine(log, strconv.Itoa(n+1))
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

func TestTwoProcessesNeverOverlap(t *testing.T) {
	t.Parallel()
	s := newSite(t, roleVar+"=section")
	marker, log := filepath.Join(s.home, "marker"), filepath.Join(s.home, "log")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 12
	loop := `i=0; while [ $i -lt ` + strconv.Itoa(rounds) + ` ]; do "$1" run section --quiet -- "$2" "$3" "$4" || exit 1; i=$((i+1)); done`
	var procs []*proc
	for range 2 {
		p := s.exec("/bin/sh", "-c", loop, "sh", binary, self, marker, log)
		procs = append(procs, p)
	}
	for _, p := range procs {
		p.wants(0)
	}
	if n := len(lines(t, log)); n != 2*rounds {
		t.Errorf("%d sections ran, want %d", n, 2*rounds)
	}
}

// drawTwice runs two processes that draw numbers for some seconds. double is how many of
// the numbers were drawn before.
func drawTwice(t *testing.T, seconds int, command string) (drawn []string, double int) {
	t.Helper()
	s := newSite(t, roleVar+"=draw")
	counter, log := filepath.Join(s.home, "counter"), filepath.Join(s.home, "log")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	loop := `end=$(($(date +%s) + ` + strconv.Itoa(seconds) + `)); while [ $(date +%s) -lt $end ]; do ` + command + ` || exit 1; done`
	var procs []*proc
	for range 2 {
		procs = append(procs, s.exec("/bin/sh", "-c", loop, "sh", binary, self, counter, log))
	}
	for _, p := range procs {
		p.wants(0)
	}
	seen := map[string]bool{}
	drawn = lines(t, log)
	for _, n := range drawn {
		if seen[n] {
			double++
		}
		seen[n] = true
	}
	return drawn, double
}

func TestNumbersDrawnUnderTheLockAreUnique(t *testing.T) {
	t.Parallel()
	drawn, double := drawTwice(t, 5, `"$1" run ids --quiet -- "$2" "$3" "$4"`)
	if double > 0 {
		t.Errorf("%d of %d numbers were drawn twice, want none", double, len(drawn))
	}
	if len(drawn) < 2 || drawn[len(drawn)-1] != strconv.Itoa(len(drawn)) {
		t.Errorf("%d numbers were drawn, and the last is %s, want the number of all", len(drawn), drawn[len(drawn)-1])
	}
}

// Without the lock the same processes draw numbers twice, so the test above could fail.
func TestNumbersDrawnWithoutTheLockAreNotUnique(t *testing.T) {
	for try := 1; ; try++ {
		drawn, double := drawTwice(t, 2, `"$2" "$3" "$4"`)
		if double > 0 {
			t.Logf("%d of %d numbers were drawn twice", double, len(drawn))
			return
		}
		if try == 10 {
			t.Fatalf("no number was drawn twice without a lock in 10 tries, %d numbers in the last, want one", len(drawn))
		}
	}
}
