package docs_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/built"
)

// The clients for Python and Node pass their tests against servers of this repository, which
// the tests start, kill, and start again.
func TestThinClients(t *testing.T) {
	t.Parallel() // it mostly waits
	leasehold, err := built.Command(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir     string
		command []string
	}{
		{"clients/python", []string{"python3", "-B", "-W", "error", "-m", "unittest", "tests.test_lock"}},
		{"clients/node", []string{"node", "--test"}},
	} {
		t.Run(c.command[0], func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(c.command[0], c.command[1:]...)
			cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "LEASEHOLD="+leasehold)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %v (make test installs the interpreters)\n%s", c.command, err, out)
			}
		})
	}
}
