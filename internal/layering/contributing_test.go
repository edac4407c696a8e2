package layering

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// CONTRIBUTING.md states the limits that the checker applies.
func TestContributingStatesTheLimits(t *testing.T) {
	text, err := os.ReadFile(root + "/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("files have at most %d lines", longest),
		fmt.Sprintf("types have at most %d methods", mostMethods),
		fmt.Sprintf("at most %d files of a package refer to each other in a circle", mostInCircle),
		"`" + register + "`",
	} {
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("CONTRIBUTING.md does not say %q", want)
		}
	}
}
