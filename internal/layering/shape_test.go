package layering

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// emptyNames say nothing about the content, so that such a file or package ends up holding
// anything.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "misc"}

// checkShape returns what is wrong with the names of a file.
func checkShape(f file) []string {
	var wrong []string
	base := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.path), ".go"), "_test")
	for _, name := range []string{path.Base(f.pkg), f.syntax.Name.Name, base} {
		if slices.Contains(emptyNames, name) {
			wrong = append(wrong, fmt.Sprintf("%s: %q says nothing about what is inside: name it after its one job", f.path, name))
			break
		}
	}
	return wrong
}
