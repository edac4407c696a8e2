// Package textfile writes the metrics of a run of "leasehold run" to a file, for the textfile
// collector of Prometheus' node_exporter.
package textfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Run is one run under a lock.
type Run struct {
	Dir   string // for the file; empty: no file
	Lock  string
	Began time.Time // when leasehold began to wait for the lock

	// Started and Ended are the command's start and end, as far as it got.
	Started, Ended time.Time
}

// Check returns an error if the directory for the file is none. An absent directory would
// otherwise go unnoticed until the command has run.
func (f *Run) Check() error {
	if f.Dir == "" {
		return nil
	}
	if info, err := os.Stat(f.Dir); err != nil {
		return fmt.Errorf("--textfile: %w", err)
	} else if !info.IsDir() {
		return fmt.Errorf("--textfile %s: not a directory", f.Dir)
	}
	return nil
}

// successMetric is the one metric that a run takes over from the file of the last one.
const successMetric = "leasehold_run_last_success_timestamp_seconds"

// Write replaces the file by one about the run that has just ended with that code. Readers
// see either of them, and whole.
func (f *Run) Write(code int, now time.Time) error {
	path := filepath.Join(f.Dir, Name(f.Lock))
	success := now.Unix()
	if f.Started.IsZero() || code != 0 {
		success = lastSuccess(path)
	}
	temp, err := os.CreateTemp(f.Dir, ".leasehold-run-*") // the collector reads *.prom only
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // fails once it has its name
	_, err = temp.WriteString(f.text(code, now, success))
	// The collector runs as another user.
	if err = errors.Join(err, temp.Chmod(0o644), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// text returns the metrics. A success of 0 is none.
func (f *Run) text(code int, now time.Time, success int64) string {
	started, waited, ran := 0.0, now.Sub(f.Began), time.Duration(0)
	if !f.Started.IsZero() {
		started, waited, ran = 1, f.Started.Sub(f.Began), f.Ended.Sub(f.Started)
	}
	label := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(f.Lock, "\uFFFD"))
	var b strings.Builder
	metric := func(name, help string, v float64) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %[1]s gauge\n%[1]s{lock=\"%[3]s\"} %[4]s\n", name, help, label, strconv.FormatFloat(v, 'f', -1, 64))
	}
	metric("leasehold_run_end_timestamp_seconds", "When the last run ended.", float64(now.Unix()))
	metric("leasehold_run_exit_code", "The exit code of the last run.", float64(code))
	metric("leasehold_run_started", "Whether the last run started its command: 0 if it did not get the lock.", started)
	metric("leasehold_run_wait_seconds", "How long the last run waited for its lock.", waited.Seconds())
	metric("leasehold_run_duration_seconds", "How long the command of the last run took.", ran.Seconds())
	if success > 0 {
		metric(successMetric, "When the last run ended whose command succeeded.", float64(success))
	}
	return b.String()
}

// lastSuccess returns the time of the last success that the file names, or 0.
func lastSuccess(path string) int64 {
	// Anything but a file of ours may keep its reader waiting, or never end.
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return 0 // there was no run
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, successMetric+"{") {
			continue
		}
		v, err := strconv.ParseInt(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 10, 64)
		if err == nil {
			return v
		}
	}
	return 0
}

// Name returns the name of the file of a lock. Names that are not fit for a file
// get a hash, so that each lock has a file of its own.
func Name(lock string) string {
	const most = 100
	safe := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '.' || r == '_' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z') {
			return r
		}
		return '_'
	}, lock)
	if safe != lock || len(safe) > most {
		safe = fmt.Sprintf("%s-%x", safe[:min(len(safe), most)], sha256.Sum256([]byte(lock)))[:min(len(safe), most)+1+16]
	}
	return "leasehold_run_" + safe + ".prom"
}
