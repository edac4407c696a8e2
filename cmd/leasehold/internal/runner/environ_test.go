package runner

import (
	"slices"
	"testing"
)

func TestEnvironReplaces(t *testing.T) {
	got := Environ([]string{"A=1", "LEASEHOLD_NAME=outer", "B=x=y", "LEASEHOLD_NAME=older"}, "LEASEHOLD_NAME=inner", "C=")
	want := []string{"A=1", "B=x=y", "LEASEHOLD_NAME=inner", "C="}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
