package sim

import "math/rand/v2"

// KindsOfSeed is the script of a seed with locks of every kind, on one server or several.
func KindsOfSeed(seed uint64) Script {
	src := seeded{rand.New(rand.NewPCG(seed, 0x41d5))}
	s := setting(src)
	s.Seed, s.Kinds, s.Alike, s.Operator = seed, 1+int(seed%4), false, seed%5 == 3
	s.Workers = max(s.Workers, 2)
	for range src.draw("faults", 0, 14) {
		s.Faults = append(s.Faults, s.drawFault(src, s.Faults))
	}
	return s
}
