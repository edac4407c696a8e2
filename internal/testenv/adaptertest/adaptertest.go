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

// SameDatabase checks that a lock acquired in st, which was opened with err, is seen by a
// client of another library: both talk to the same database. exists counts the keys of a
// name there. It closes st.
func SameDatabase(t *testing.T, what string, st store.Store, err error, exists func(ctx context.Context, name string) (int64, error)) {
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
		t.Errorf("%s: the client sees %d locks (%v)", what, n, err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// Again runs the test binary once more, with a variable that gives it a role. The process
// ends when its standard input does, which is at the end of the test at the latest.
func Again(t *testing.T, variable string) (in io.Closer, out *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), variable)
	cmd.Stderr = t.Output()
	in, err = cmd.StdinPipe()
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
		r.Close() // it may have more to say than was read
		<-ended
	})
	return in, bufio.NewReader(r)
}
