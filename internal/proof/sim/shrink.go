package sim

import "slices"

// Shrink returns a smaller script that still fails: with fewer faults, shorter,
// among fewer. It asks fails a few hundred times at most.
func Shrink(s Script, fails func(Script) bool) Script {
	try := func(smaller Script) bool {
		if smaller.check() != nil || !fails(smaller) {
			return false
		}
		s = smaller
		return true
	}
	for progress := true; progress; {
		progress = false
		for n := len(s.Faults); n >= 1; n /= 2 { // leave out n at once
			for i := 0; i+n <= len(s.Faults); {
				smaller := s
				smaller.Faults = slices.Delete(slices.Clone(s.Faults), i, i+n)
				if try(smaller) {
					progress = true
				} else {
					i++
				}
			}
		}
		for _, number := range []func(*Script) *int{
			func(s *Script) *int { return &s.Workers }, func(s *Script) *int { return &s.Clients },
			func(s *Script) *int { return &s.Nodes }, func(s *Script) *int { return &s.Locks },
		} {
			for less := true; less; {
				smaller := s
				*number(&smaller)--
				less = try(smaller)
				progress = progress || less
			}
		}
		for less := true; less && s.Span > 1; {
			smaller := s
			smaller.Span /= 2
			less = try(smaller)
			progress = progress || less
		}
	}
	return s
}
