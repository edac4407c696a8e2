// Package built has the command for tests that run it.
package built

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Command returns the path of the command: the one that "make test" has built from these
// sources for all packages, whose path is in the environment, or one that it builds in dir.
func Command(dir string) (string, error) {
	if path := os.Getenv("LEASEHOLD_BUILT"); path != "" {
		return path, nil
	}
	path := filepath.Join(dir, "leasehold")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/leasehold-dev/leasehold/cmd/leasehold").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the command: %w\n%s", err, out)
	}
	return path, nil
}
