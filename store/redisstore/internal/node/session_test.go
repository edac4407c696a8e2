package node

import (
	"log/slog"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A call that was redirected is sent alone: while a slot is being moved, a member refuses a list
// for one of its steps, and would refuse it again and again.
func TestRedirectedCallsAreSentAlone(t *testing.T) {
	e := script.Encoder{Wall: time.Now, KeyOf: cluster.Place}
	waiting := func(at int) *conn.Queue[Call] {
		var q conn.Queue[Call]
		for i := range 4 {
			c := Call{Command: e.Encode(driver.Question{Op: quorum.Extend, Lease: store.Lease{Name: "a", Owner: store.NewOwner(), TTL: time.Minute}}, nil)}
			if i == at {
				c.Trail = &Trail{Moves: 1}
			}
			q.Push(c)
		}
		return &q
	}
	for at, want := range map[int]int{0: 0, 1: 1, 2: 2, 9: 4} {
		var list script.StepList
		gather(&list, waiting(at), 100)
		if list.Len() != want {
			t.Errorf("with a redirected call at %d, %d calls are in the list, want %d", at, list.Len(), want)
		}
	}
}

// A call that another member of a cluster refused has not been sent to this one.
func TestRedirectedCallBeginsAnew(t *testing.T) {
	n := makeNode(0, config.Address{}, bareStore(config.Config{Logger: slog.New(slog.DiscardHandler)}))
	if err := n.Enqueue(Call{Command: PingCommand, To: Nobody{}, steps: 4, again: byText}, true); err != nil {
		t.Fatal(err)
	}
	if c, ok := n.Waiting.Pop(); !ok || c.steps != 0 || c.again != notResent {
		t.Errorf("%+v, %v, want it as if it had never been sent", c, ok)
	}
}
