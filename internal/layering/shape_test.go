package layering

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// longest is how many lines a file may have unless it is a test.
const longest = 400

// emptyNames say nothing about the content, so that such a file or package ends up holding
// anything.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "misc"}

// checkShape returns what is wrong with the size and the names of a file.
func checkShape(f file) []string {
	var wrong []string
	if !f.test && f.lines > longest {
		wrong = append(wrong, fmt.Sprintf("%s: has %d lines, the most is %d: part it, one concept per file", f.path, f.lines, longest))
	}
	base := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.path), ".go"), "_test")
	for _, name := range []string{path.Base(f.pkg), f.syntax.Name.Name, base} {
		if slices.Contains(emptyNames, name) {
			wrong = append(wrong, fmt.Sprintf("%s: %q says nothing about what is inside: name it after its one job", f.path, name))
			break
		}
	}
	return wrong
}
