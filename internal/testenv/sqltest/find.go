package sqltest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
)

// find looks for a program in PATH and then in the directories where packages
// install it outside PATH. Of several versions it returns the newest by name.
func (e engine) find(names []string, elsewhere ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			// Programs look for others of their package beside themselves, so a link
			// will not do.
			return filepath.EvalSymlinks(path)
		}
		for _, pattern := range elsewhere {
			found, err := filepath.Glob(filepath.Join(pattern, name))
			if err != nil {
				return "", err
			}
			slices.Sort(found)
			if len(found) > 0 {
				return found[len(found)-1], nil
			}
		}
	}
	return "", fmt.Errorf(`%s is not installed, and these tests need a real one. Install it and run again:
%s
or run "make test", which does this where it can`, names[0], e.install)
}
