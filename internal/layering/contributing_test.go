package layering

import (
	"os"
	"strings"
	"testing"
)

// CONTRIBUTING.md names the register that the checker reads.
func TestContributingNamesTheRegister(t *testing.T) {
	text, err := os.ReadFile(root + "/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "`" + register + "`"; !strings.Contains(string(text), want) {
		t.Errorf("CONTRIBUTING.md does not say %q", want)
	}
}
