package audience

import (
	"slices"
	"testing"
)

// Tell calls each function that is added and not stopped, in order.
func TestAudience(t *testing.T) {
	var a Audience
	var calls []string
	add := func(name string) (stop func()) {
		return a.Add(func(owner string) { calls = append(calls, name+" "+owner) })
	}
	one, two := add("one"), add("two")
	a.Tell("x")
	one()
	a.Tell("y")
	one()
	three := add("three")
	a.Tell("z")
	two()
	three()
	a.Tell("nobody")
	if want := []string{"one x", "two x", "two y", "two z", "three z"}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}
