package locks

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/bench/floor"
)

// floorOf is SET NX PX and compare-and-delete by hand; with a token, the acquiring
// script also counts.
func floorOf(n int, token bool) Kind {
	k := Kind{Name: fmt.Sprintf("floor-%d", n), Label: "by hand, " + nodes(n), Role: Floor, Engine: Redis, Nodes: n}
	if token {
		k.Name, k.Label = fmt.Sprintf("floor-token-%d", n), "by hand with a counter, "+nodes(n)
	}
	k.Open = func(_ context.Context, addrs []string) (Client, error) { return floor.Open(addrs, token) }
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
