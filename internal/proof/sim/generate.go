package sim

import "math/rand/v2"

// source draws the numbers a script is made of: rapid, which can then shrink a
// script that fails, or a seed.
type source interface {
	// draw is from low to high, both included.
	draw(what string, low, high int) int
}

// AnyOfSeed is the script of a seed: every fifth has locks of all kinds, and the others mutexes.
func AnyOfSeed(seed uint64) Script {
	if seed%5 == 4 {
		return KindsOfSeed(seed / 5)
	}
	return OfSeed(seed)
}

// OfSeed is the script of a seed with mutexes.
func OfSeed(seed uint64) Script {
	src := seeded{rand.New(rand.NewPCG(seed, 0x5eed))}
	s := setting(src)
	s.Seed, s.Eager, s.Operator = seed, !s.Poll && seed%2 == 0, seed%5 == 3
	for range src.draw("faults", 0, 14) {
		s.Faults = append(s.Faults, s.drawFault(src, s.Faults))
	}
	return s
}

type seeded struct{ *rand.Rand }

func (s seeded) draw(_ string, low, high int) int { return low + s.IntN(high-low+1) }

// pick draws one of the choices. A choice that is listed twice comes twice as often.
func pick[T any](src source, what string, of ...T) T { return of[src.draw(what, 0, len(of)-1)] }

// setting draws a script without faults.
func setting(src source) Script {
	s := Script{
		Seed:    uint64(src.draw("seed", 0, 1<<30)),
		Nodes:   pick(src, "nodes", 3, 3, 3, 5, 5, 1, 2, 4, 7),
		Clients: src.draw("clients", 2, 4),
		Workers: pick(src, "workers", 1, 1, 2, 3),
		Locks:   pick(src, "locks", 1, 1, 2),
		TTL:     pick(src, "ttl", 1, 2, 2, 5, 15),
	}
	s.NodeTimeout = pick(src, "nodetimeout", 0, 0, 0, 5, 20) * s.TTL * 18 // up to a fifth of the TTL
	s.Span = s.TTL * src.draw("span", 4, 20)
	s.Alike = s.Workers > 1 && src.draw("alike", 0, 1) == 1
	s.Poll = !s.Alike && src.draw("poll", 0, 2) == 0
	s.Eager = !s.Poll && s.Seed%2 == 0
	return s
}

// drawFault draws one fault that the protocol has to survive. Half of them come soon after
// the one before and hit the same client: only several in a row have an effect.
func (s *Script) drawFault(src source, before []Fault) Fault {
	ttl := int(s.longest().Milliseconds())
	kinds := []Kind{
		Hold, Hold, Fade, Fade, Deaf, Deaf, Delay, Delay, Cut, Cut, Cut, Pause, Pause, Move, Move, Move, Crash, Crash, Crash, Wipe,
		Ail, Slow, Doze, StepBack, WallClock, Full, Kill, Replay, Refuse, Refuse,
	}
	if s.Nodes > 2 {
		kinds = append(kinds, Boot, Replace, Replicate)
	}
	f := Fault{
		Kind:   pick(src, "kind", kinds...),
		At:     src.draw("at", 0, s.Span*1000),
		For:    src.draw("for", 1, pick(src, "long", ttl/20, ttl, 2*ttl)),
		Client: src.draw("client", 0, s.Clients),
		Node:   src.draw("node", 0, s.Nodes),
	}
	if len(before) > 0 && src.draw("chained", 0, 1) == 1 {
		last := before[len(before)-1]
		f.At = min(last.At+f.At%ttl, s.Span*1000)
		f.Client = last.Client
	}
	switch f.Kind {
	case Delay:
		f.Size = src.draw("size", 1, pick(src, "much", 10, 100, ttl))
	case Fade:
		f.Node = src.draw("all", 0, 1) * f.Node
		f.Size = src.draw("size", 1, max(1, int(s.nodeTimeout(s.longest()).Milliseconds()/2)))
	case Cut:
		f.For = 0
		f.Size = src.draw("size", 0, pick(src, "much", 10, 100, ttl))
	case Replay:
		f.For = 0
		f.Size = src.draw("size", 1, 4)
	case Ail:
		f.Client = 0
		f.Size = src.draw("size", 0, len(troubles)-1)
	case Boot:
		f.Client, f.Node = 0, max(f.Node, 1)
		f.Size = src.draw("size", 0, 600_000)
	case Replace:
		f.For, f.Client, f.Node = 0, 0, max(f.Node, 1)
		f.Size = src.draw("size", 0, 1000)
	case Replicate:
		f.Client, f.Node = 0, max(f.Node, 1)
		f.Size = pick(src, "whose", 0, src.draw("size", 1, 1000))
	case Slow:
		f.Client = 0
		f.Size = src.draw("size", 1, 50)
	case Crash:
		f.Client, f.Node = 0, max(f.Node, 1)
		f.Size = pick(src, "loss", 0, 0, src.draw("size", 1, 1000), 2000)
	case Wipe:
		f.For, f.Client = 0, 0
	case StepBack:
		f.For, f.Client = 0, 0
		f.Size = src.draw("size", 1, backMost)
	case WallClock:
		f.For, f.Node = 0, 0
		f.Size = src.draw("size", -100_000, 100_000)
	case Pause:
		f.Node = 0
		f.Size = src.draw("size", 0, 1)
	case Move:
		f.Node = 0
		f.Size = src.draw("size", 0, 1)
	case Doze:
		f.Client, f.Node = 0, 0
	case Kill:
		f.For, f.Node, f.Client = 0, 0, max(f.Client, 1)
	}
	return f
}
