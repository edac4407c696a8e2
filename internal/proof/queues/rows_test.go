package queues

import (
	"strings"
	"testing"
)

// Every row comes to its verdict. Those that switch off a mechanism are run in the
// checkers' build only.
func TestVerdicts(t *testing.T) {
	for _, row := range Rows() {
		if !Switch(row.Off) {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			defer Switch("")
			r := Search(row.Model)
			t.Logf("%d states, %d ends", r.States, r.Ends)
			if r.Found != row.Want {
				t.Errorf("%s: found %q, want %q\n%s", row.What, r.Found, row.Want, strings.Join(r.Trace, "\n"))
			}
			if r.Did&row.Reach != row.Reach {
				t.Errorf("%s: the queues did %b, and must do %b", row.What, r.Did, row.Reach)
			}
			if (r.Found == "") != (len(r.Trace) == 0) {
				t.Errorf("found %q, and the trace is %q", r.Found, r.Trace)
			}
		})
	}
}
