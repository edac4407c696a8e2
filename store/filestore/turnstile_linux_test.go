package filestore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
)

// A writer that finds the file busy is in the turnstile, where other processes see it, until
// it has written.
func TestBusyWriterEntersTheTurnstile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s, busy := mustOpen(t, path, nil), mustOpen(t, path, nil)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	other := (&anchor{main: f}).turnstile() // as of another process: these locks belong to the open file
	mustAcquire(t, s, request("a"))
	if other.taken() {
		t.Error("a writer is in the turnstile of a file that was not busy")
	}
	stop := block(t, busy)
	done := make(chan error, 1)
	go func() {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("b")})
		done <- err
	}()
	eventually.True(t, "the writer is in the turnstile", other.taken)
	if err := other.set(true); err == nil {
		t.Error("two processes are in the turnstile")
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if other.taken() {
		t.Error("the writer is still in the turnstile after it has written")
	}

	// A writer gives way to another process for a moment.
	if err := other.set(true); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, s, request("c"))
	if s.turnstile.past == 0 {
		t.Error("the writer did not give way to another process")
	}
	if err := errors.Join(busy.Close(), s.Close(), f.Close()); err != nil { // f last: see anchor
		t.Fatal(err)
	}
}
