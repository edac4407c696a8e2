package localredis

import (
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
)

// How servers behave is tested with package redistest; here is what tests can
// not see from there.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A port that is taken must never look like a server of ours that is up, even
// when what has it is a Redis server too.
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
		t.Fatal("launched with a setting that does not exist")
	}
	if !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("the error does not show the log: %v", err)
	}
}

func TestMissingProgramSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Launch(Options{})
	if err == nil {
		t.Fatal("launched without a program")
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
	// Nothing but the goroutine that waits for the process.
	goleak.VerifyNone(t, goleak.IgnoreAnyFunction(child.Goroutine))
	dir := s.dir
	s.Close()
	s.Close()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory %s: %v, want it gone", dir, err)
	}
	if err := s.Restart(); err == nil {
		t.Error("a closed server restarts")
	}
}

func TestTroubleIsReported(t *testing.T) {
	var told []error
	s := launch(t, Options{Trouble: func(err error) { told = append(told, err) }})
	s.Kill()
	if err := s.Freeze(); !errors.Is(err, ErrDown) {
		t.Errorf("Freeze while down: %v", err)
	}
	if err := s.Thaw(); !errors.Is(err, ErrDown) {
		t.Errorf("Thaw while down: %v", err)
	}
	if len(told) != 2 {
		t.Errorf("%d errors were told, want 2: %v", len(told), told)
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
