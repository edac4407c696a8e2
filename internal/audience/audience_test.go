package audience

import (
	"slices"
	"testing"
)

func TestAudience(t *testing.T) {
	var a Audience
	var told []string
	add := func(name string) (stop func()) {
		return a.Add(func(owner string) { told = append(told, name+" "+owner) })
	}
	if !a.Empty() {
		t.Error("somebody is there from the start")
	}
	one, two := add("one"), add("two")
	a.Tell("x")
	one()
	a.Tell("y")
	one()
	three := add("three")
	a.Tell("z")
	if a.Empty() {
		t.Error("nobody is there")
	}
	two()
	three()
	if !a.Empty() {
		t.Error("somebody stayed")
	}
	a.Tell("nobody")
	if want := []string{"one x", "two x", "two y", "two z", "three z"}; !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
}
