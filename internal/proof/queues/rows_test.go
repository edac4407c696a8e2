package queues

import (
	"strings"
	"testing"
)

// Every row has its verdict. Rows that switch off a mechanism run only in builds with the tag
// mutants.
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
				t.Errorf("%s: the queues did %b, want at least %b", row.What, r.Did, row.Reach)
			}
			if (r.Found == "") != (len(r.Trace) == 0) {
				t.Errorf("found %q with the trace %q, want a trace if and only if something is found", r.Found, r.Trace)
			}
		})
	}
}
