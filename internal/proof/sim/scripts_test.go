package sim

import (
	"testing"

	"pgregory.net/rapid"
)

// rapidly draws from rapid, which then can make a failing script smaller.
type rapidly struct{ *rapid.T }

func (r rapidly) draw(what string, low, high int) int {
	return rapid.IntRange(low, high).Draw(r.T, what)
}

func scripts() *rapid.Generator[Script] {
	return rapid.Custom(func(t *rapid.T) Script {
		s := setting(rapidly{t})
		var before []Fault
		one := rapid.Custom(func(t *rapid.T) Fault {
			f := s.drawFault(rapidly{t}, before)
			before = append(before, f)
			return f
		})
		s.Faults = rapid.SliceOfN(one, 0, 14).Draw(t, "faults")
		return s
	})
}

// Scripts that rapid draws have more extreme values than those of the seeds. They are the same
// each time. To search further, use another seed and more scripts:
//
//	go test ./internal/proof/sim -run '^TestScripts$' -rapid.seed=7 -rapid.checks=500
func TestScripts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := scripts().Draw(rt, "script")
		if r := Run(t, s, Shipped(), false); len(r.Violations) > 0 {
			rt.Fatalf("%v\nreplay: go test ./internal/proof/sim -run '^TestReplay$' -v -script='%s'", r.Violations, s)
		}
	})
}
