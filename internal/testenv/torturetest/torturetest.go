// Package torturetest runs "leasehold lab torture" on a server of a test: processes of the built
// command compete for locks, and some are stopped and killed meanwhile.
package torturetest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/built"
)

// A test is short unless these flags say otherwise:
//
//	go test -run TestTorture ./store/natsstore/natsstoretest -torture.for=1m -torture.procs=32
var (
	length = flag.Duration("torture.for", 6*time.Second, "how long processes are disturbed")
	procs  = flag.Int("torture.procs", 6, "how many processes compete")
)

// passed is the verdict if no promise was broken.
var passed = regexp.MustCompile(`(?m)^PASS: .*nobody waited longer than (\S+) for a lock that was available`)

// Run has processes compete for locks with a TTL, and fails the test if a promise was broken. A
// process may wait for a lock that is available for idle; 0 means that this is not judged.
// disturb, if it is not nil, runs while the processes do, and returns when its context ends.
func Run(t *testing.T, url string, ttl, idle time.Duration, disturb func(ctx context.Context), env ...string) {
	t.Helper()
	dir := t.TempDir()
	command, err := built.Command(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), *length+5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, command, "lab", "torture", "--kinds", "--procs", fmt.Sprint(*procs), "--locks", "4", "--ttl", ttl.String(), "--for", length.String(), "--out", filepath.Join(dir, "history"))
	c.Env = append(append(os.Environ(), "LEASEHOLD_STORE="+url), env...) // the URL may have a password
	var out, progress bytes.Buffer
	c.Stdout, c.Stderr = &out, &progress
	over := make(chan struct{})
	disturbed, calm := context.WithTimeout(ctx, *length)
	go func() {
		defer close(over)
		if disturb != nil {
			disturb(disturbed)
		}
	}()
	err = c.Run()
	calm()
	<-over
	verdict := passed.FindSubmatch(out.Bytes())
	if err != nil || verdict == nil {
		t.Errorf("%v:\n%s\n%s", err, progress.Bytes(), out.Bytes())
		return
	}
	t.Logf("%s", verdict[0])
	waited, err := time.ParseDuration(string(verdict[1]))
	if err != nil {
		t.Fatal(err)
	}
	if idle > 0 && waited > idle {
		t.Errorf("somebody waited %v for a lock that was available, want at most %v", waited, idle)
	}
}
