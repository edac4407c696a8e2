package main

import (
	"strings"
	"testing"
)

// What does not compile is found where it is: in files of one system, and within functions.
func TestCheck(t *testing.T) {
	for system, want := range map[string]string{
		"linux/amd64":   "",
		"linux/386":     "overflows",
		"darwin/arm64":  "undefined: missing",
		"windows/amd64": "cannot use",
	} {
		err := check("testdata/broken", system, "./...")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("on %s: %v; want %q", system, err, want)
		}
	}
	if err := check("testdata/broken", "linux/none", "./..."); err == nil {
		t.Error("a processor that does not exist was read")
	}
	if err := check("testdata/broken", "linux/amd64", "./none"); err == nil {
		t.Error("a package that does not exist was read")
	}
}
