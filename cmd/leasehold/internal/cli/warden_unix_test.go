//go:build unix

package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner/warden"
)

// A process beside the command starts without what it does not need: see package
// warden. That depends on the order in which packages are initialized.
func TestHelpersInitializeNoStore(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{warden.GuardName, warden.GateName} {
		c := exec.Command(self)
		c.Args = []string{name, "-test.run=^$"} // no helper's argument; and should this be no helper, it runs no test
		c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		out, _ := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); code != codeTrouble {
			t.Errorf("%s: code %d, want %d", name, code, codeTrouble)
		}
		if text := string(out); !strings.Contains(text, "init os ") || strings.Contains(text, "init crypto/tls ") {
			t.Errorf("%s initializes a store, or says nothing of what it does:\n%s, want text with %q and no %q", name, text, "init os ", "init crypto/tls ")
		}
	}
}
