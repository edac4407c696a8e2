package layering

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// longest is how many lines a file may have that is not a test.
const longest = 400

// empty names say nothing about what is inside, and so end up holding anything.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "misc"}

// checkShape says what is wrong with the file's size and names.
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
