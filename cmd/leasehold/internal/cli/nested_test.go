//go:build unix

package cli

import (
	"strings"
	"testing"
)

// A command learns that it runs under the lock that it asks for, two and three levels down and
// whatever bytes its name has.
func TestRunUnderStrangeNames(t *testing.T) {
	s := newSite(t).plain()
	odd := "x \xff\n$'"
	for _, between := range [][]string{{"y"}, {"y", odd}, {odd, "y", "z"}} {
		args := []string{"run", odd + "1", "--"}
		for _, name := range between {
			args = append(args, s.binary, "run", name, "--")
		}
		args = append(args, s.binary, "run", odd+"1", "--wait", "1h", "--", "echo", "ran")
		p := s.run(125, args...)
		if said := p.err.String(); p.out.String() != "" || strings.Count(said, "\n") != 1 || !strings.Contains(said, "that we run under") {
			t.Errorf("%q: stdout %q, stderr %q, want one line on stderr and nothing on stdout", between, p.out.String(), said)
		}
	}
}
