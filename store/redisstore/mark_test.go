package redisstore

import (
	"io"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// markOf returns the text of a mark that was declared open, changed by change.
func markOf(change func(*nodemark.Mark)) string {
	m := nodemark.New()
	m.Open, m.Why = true, nodemark.Declared
	if change != nil {
		change(&m)
	}
	return m.String()
}

// openMark lets the server grant to every client.
var openMark = markOf(nil)

// A request that checks the mark, and that was enqueued before the server was restarted, does
// not mark the new run as the old one.
func TestMarkChecksAreNotSentToAnotherRun(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s, err := openEngine(t.Context(), "redis://"+servers[0].Addr()+","+servers[1].Addr()+","+servers[2].Addr(), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n, ctx := s.Nodes[0], t.Context()
	was := n.Ask(ctx, script.NewCommand("GET", script.MarkKey)) // connects
	servers[0].Kill()
	if err := servers[0].Restart(); err != nil {
		t.Fatal(err)
	}
	servers[0].Declare()
	declared := servers[0].Text(t, "GET", script.MarkKey)
	if w := n.Pipe(); w != nil {
		w.Abandon(io.EOF)
	}
	n.Look(false)
	if r := n.Ask(ctx, node.PingCommand); r.Outcome != store.Granted {
		t.Fatalf("ping: %v, %v, want %v", r.Outcome, r.Err, store.Granted)
	}
	now, err1 := nodemark.Parse(servers[0].Text(t, "GET", script.MarkKey))
	want, err2 := nodemark.Parse(declared)
	if err1 != nil || err2 != nil || !now.Open || now.Run != want.Run || string(was.Value.Text) == declared {
		t.Errorf("the mark is %v, want it as declared: %v", now, want)
	}
}
