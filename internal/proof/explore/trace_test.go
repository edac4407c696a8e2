//go:build mutants

package explore

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what TestTrace is told to its file")

// A trace describes a violation step by step: the renewal that is too late, and the
// lock that was handed over long before its waiter hears of it.
func TestTrace(t *testing.T) {
	for _, row := range Rows() {
		file := "testdata/" + row.Name + ".txt"
		if row.Name != "E1" && row.Name != "W-pushed" {
			continue
		}
		if !Switch(row.Off...) {
			t.Fatalf("cannot switch %q off", row.Off)
		}
		told := strings.Join(Search(row.Model, Limits{Workers: 1}).Trace, "\n") + "\n"
		Switch()
		if *rewrite {
			if err := os.WriteFile(file, []byte(told), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if told != string(want) {
			t.Errorf("told is\n%s\nand %s has\n%s", told, file, want)
		}
	}
}
