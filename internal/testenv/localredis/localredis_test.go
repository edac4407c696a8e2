package localredis

import (
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
)

// The tests of package redistest test how servers behave. The tests here need internals of
// this package.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Start must not take another program on its port for its own server, even if that is a Redis
// server too.
func TestPortTakenIsNoticed(t *testing.T) {
	other := launch(t, Options{})
	binary, err := findBinary()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{setup: setup{binary: binary, port: other.port, dir: t.TempDir()}}
	if err := s.start(false); !errors.Is(err, errPortTaken) {
		s.Kill()
		t.Fatalf("start on the port of %s: %v, want %v", other.Addr(), err, errPortTaken)
	}
}

func TestBadSettingShowsTheLog(t *testing.T) {
	s, err := Launch(Options{Args: []string{"--no-such-setting", "1"}})
	if err == nil {
		s.Close()
		t.Fatal("Launch with an unknown setting: nil, want an error")
	}
	if !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("the error is %v, want it to show the log", err)
	}
}

func TestMissingProgramSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Launch(Options{})
	if err == nil {
		t.Fatal("Launch without the program: nil, want an error")
	}
	for _, want := range []string{"apt-get install -y redis-server", "dnf install -y redis", "brew install redis"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	s, err := Launch(Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Only the goroutine that waits for the process may run.
	goleak.VerifyNone(t, goleak.IgnoreAnyFunction(child.Goroutine))
	dir := s.dir
	s.Close()
	s.Close()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory %s: %v, want it gone", dir, err)
	}
	if err := s.Restart(); err == nil {
		t.Error("Restart of a closed server: nil, want an error")
	}
}

func TestTroubleIsReported(t *testing.T) {
	var reported []error
	s := launch(t, Options{Trouble: func(err error) { reported = append(reported, err) }})
	s.Kill()
	if err := s.Freeze(); !errors.Is(err, ErrDown) {
		t.Errorf("Freeze while down: %v, want ErrDown", err)
	}
	if err := s.Thaw(); !errors.Is(err, ErrDown) {
		t.Errorf("Thaw while down: %v, want ErrDown", err)
	}
	if len(reported) != 2 {
		t.Errorf("%d errors were reported, want 2: %v", len(reported), reported)
	}
}

// launch starts a server that ends with the test.
func launch(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Launch(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
