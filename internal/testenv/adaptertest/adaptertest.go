// Package adaptertest has what the tests of several adapters need.
package adaptertest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/store"
)

// SameDatabase checks that a client of another library sees a lock that is acquired in st, so
// that both use the same database. The argument err is that of opening st, and exists counts
// the keys of a name. SameDatabase closes st.
func SameDatabase(t *testing.T, what string, st *store.Store, err error, exists func(ctx context.Context, name string) (int64, error)) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	defer st.Close()
	l, err := leasehold.New(st, nil).Mutex("a").Acquire(t.Context())
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if n, err := exists(t.Context(), "a"); n != 1 || err != nil {
		t.Errorf("%s: the client sees %d locks (%v), want 1", what, n, err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// Process is a run of the test binary in another role.
type Process struct {
	*child.Process
	In  io.Closer     // its standard input
	Out *bufio.Reader // its standard output
}

// Again runs the test binary once more, with variables that give it a role. The process
// must end when its standard input does, which is at the end of the test at the latest.
func Again(t *testing.T, variables ...string) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), variables...)
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	cmd.Stdout = w
	p, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-p.Done()
		w.CloseWithError(fmt.Errorf("the process has ended: %v", p.Err()))
	}()
	t.Cleanup(func() {
		in.Close()
		r.Close() // the process may have written more than was read
		<-ended
	})
	return &Process{p, in, bufio.NewReader(r)}
}

// Wants requires the next line that the process prints to be line.
func (p *Process) Wants(t *testing.T, line string) {
	t.Helper()
	if got, err := p.Out.ReadString('\n'); got != line+"\n" {
		t.Fatalf("the process printed %q (%v), want %q", got, err, line)
	}
}
