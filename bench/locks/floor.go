package locks

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/bench/floor"
)

// floorOf is SET NX PX and compare-and-delete by hand. What it does besides is in its name.
func floorOf(n int, work floor.Work) Kind {
	k := Kind{Name: "floor", Label: "by hand", Role: Floor, Engine: Redis, Nodes: n}
	switch work {
	case floor.Counts:
		k.Name, k.Label = "floor-token", "by hand with a counter"
	case floor.Lists:
		k.Name, k.Label = "floor-lists", "by hand with a counter, in lists"
	}
	k.Name, k.Label = fmt.Sprintf("%s-%d", k.Name, n), k.Label+", "+nodes(n)
	k.Open = func(_ context.Context, addrs []string) (Client, error) { return floor.Open(addrs, work) }
	return k
}

// lineOf is a queue by hand: each holder hands the lock to the next waiter.
func lineOf(n int) Kind {
	return Kind{
		Name: fmt.Sprintf("floor-line-%d", n), Label: "a queue by hand, " + nodes(n), Role: Floor, Engine: Redis, Nodes: n,
		Sends: []string{"setnx", "zcard"}, // before the lock goes round
		Open:  func(_ context.Context, addrs []string) (Client, error) { return floor.OpenLine(addrs) },
	}
}
