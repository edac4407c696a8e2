package otel

import (
	"runtime/debug"
	"testing"
)

// Spans and metrics tell the version of this module that a program was built with.
func TestVersionIsThatOfTheModule(t *testing.T) {
	program := func(m debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{Deps: []*debug.Module{{Path: "example.org/other", Version: "v9.0.0"}, &m}}
	}
	for _, c := range []struct {
		what string
		in   *debug.BuildInfo
		want string
	}{
		{"a release", program(debug.Module{Path: scope, Version: "v1.2.3"}), "v1.2.3"},
		{"a clone", program(debug.Module{Path: scope, Version: "(devel)"}), ""},
		{"another module in its place", program(debug.Module{Path: scope, Version: "v1.2.3", Replace: &debug.Module{Path: "../otel"}}), ""},
		{"a program without it", program(debug.Module{Path: "example.org/more", Version: "v1.0.0"}), ""},
		{"no build information", nil, ""},
	} {
		if got := versionIn(c.in); got != c.want {
			t.Errorf("%s: version %q, want %q", c.what, got, c.want)
		}
	}
}
