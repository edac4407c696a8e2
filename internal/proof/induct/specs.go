package induct

import _ "embed"

//go:embed redlock.spec
var redlock string

// Specs returns all that is proved.
func Specs() []*Spec {
	return []*Spec{Redlock(), read("redlock.spec", redlock, "floor")}
}

// Redlock returns the protocol over independent nodes whose counters survive crashes.
func Redlock() *Spec { return read("redlock.spec", redlock, "durable") }

func read(name, text, variant string) *Spec {
	s, err := Parse(name, text, variant)
	if err != nil {
		panic(err)
	}
	if variant != "" {
		s.Name += " (" + variant + ")"
	}
	return s
}
