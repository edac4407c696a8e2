//go:build mutants

package explore

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the traces of TestTrace to their files")

// A trace describes a violation step by step: a renewal that is too late, and a grant that
// reaches its waiter long after the lock was handed over.
func TestTrace(t *testing.T) {
	for _, row := range Rows() {
		file := "testdata/" + row.Name + ".txt"
		if row.Name != "E1" && row.Name != "W-pushed" {
			continue
		}
		if !Switch(row.Off...) {
			t.Fatalf("cannot switch %q off", row.Off)
		}
		trace := strings.Join(Search(row.Model, Limits{Workers: 1}).Trace, "\n") + "\n"
		Switch()
		if *rewrite {
			if err := os.WriteFile(file, []byte(trace), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if trace != string(want) {
			t.Errorf("the trace is\n%s\nwant that of %s:\n%s", trace, file, want)
		}
	}
}
