package store_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// The text of a BusyError names the lock, its holder, how long it lasts and how many
// waiters are ahead, in words that need no context.
func TestBusyErrorText(t *testing.T) {
	holder := store.Holder{Owner: "0123456789abcdef"}
	for _, c := range []struct {
		err  store.BusyError
		want string
	}{
		{store.BusyError{ExpiresIn: 2 * time.Second, Position: 1}, ", expires in 2s unless renewed; this caller is next in the queue"},
		{store.BusyError{ExpiresIn: 2 * time.Second, Position: 4}, ", expires in 2s unless renewed; waiters ahead in the queue: 3"},
		{store.BusyError{ExpiresIn: -1}, ", without an expiry: another kind of client made it, and it stays until it is deleted"},
		{store.BusyError{Err: context.DeadlineExceeded}, " (context deadline exceeded)"},
	} {
		c.err.Name, c.err.Holder = "jobs", holder
		if got, want := c.err.Error(), `lock "jobs" is held by `+holder.String()+c.want; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	holder.Waiting = true
	for position, end := range []string{", which waits ahead in the queue", ", which waits too; this caller is next in the queue", ", which waits too; waiters ahead in the queue: 1"} {
		err := store.BusyError{Name: "jobs", Holder: holder, ExpiresIn: time.Second, Position: position}
		if got, want := err.Error(), `lock "jobs" is reserved for `+holder.String()+end; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// If quarantine prevents a quorum, the error names the command that ends it. Otherwise it
// does not, since the command would not help.
func TestQuarantineNamesTheWayOut(t *testing.T) {
	granted := store.NodeOutcome{Node: "a", Outcome: store.Granted}
	quarantined := store.NodeOutcome{Node: "b", Outcome: store.Quarantined, ExpiresIn: 1e9}
	unreachable := store.NodeOutcome{Node: "c", Outcome: store.Unreachable}
	for _, c := range []struct {
		nodes []store.NodeOutcome
		need  int
		named bool
	}{
		{[]store.NodeOutcome{quarantined}, 1, true},
		{[]store.NodeOutcome{granted, quarantined, quarantined}, 2, true},
		{[]store.NodeOutcome{granted, quarantined, unreachable}, 2, true},
		{[]store.NodeOutcome{unreachable, quarantined, unreachable}, 2, false},
		{[]store.NodeOutcome{granted, unreachable, unreachable}, 2, false},
	} {
		err := &store.QuorumError{Op: "acquire", Name: "x", Need: c.need, Nodes: c.nodes}
		if got := strings.Contains(err.Error(), "ootstrap"); got != c.named {
			t.Errorf("%v: names bootstrap: %v, want %v", err, got, c.named)
		}
	}
}

// The text of a QuorumError begins with what it is about, then says how many nodes answered, and then
// what each of them did, with the cause first. An error of a look grants nothing.
func TestQuorumErrorText(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	down := store.NodeOutcome{Node: "b:1", Outcome: store.Unreachable, Err: refused}
	ok := store.NodeOutcome{Node: "a:1", Outcome: store.Granted}
	late := store.NodeOutcome{Node: "c:1", Outcome: store.TimedOut, Err: errors.New("no answer within 50ms")}
	apart := store.NodeOutcome{Node: "d:1", Outcome: store.Quarantined, ExpiresIn: time.Minute}
	absent := store.NodeOutcome{Node: "e:1", Outcome: store.Absent}
	nodes := func(n ...store.NodeOutcome) []store.NodeOutcome { return n }
	for _, c := range []struct {
		err  store.QuorumError
		want string
	}{
		{store.QuorumError{Op: "open", Store: "redis", Need: 1, Nodes: nodes(down)}, "redis b:1: connection refused"},
		{store.QuorumError{Op: "open", Store: "PostgreSQL", Need: 1, Nodes: nodes(store.NodeOutcome{Node: "PostgreSQL", Outcome: store.Refused, Err: errors.New("no")})}, "PostgreSQL: no"},
		{store.QuorumError{Op: "acquire", Name: "x", Store: "redis", Need: 1, Nodes: nodes(down)}, `acquire "x": b:1: connection refused`},
		{store.QuorumError{Op: "bootstrap", Need: 1, Nodes: nodes(down)}, "bootstrap: b:1: connection refused"},
		{store.QuorumError{Op: "open", Store: "redis", Need: 2, Nodes: nodes(ok, down, late)}, "redis: 1 of 3 servers answered, 2 are needed: a:1: answered; b:1: connection refused; c:1: timed out: no answer within 50ms"},
		{store.QuorumError{Op: "acquire", Name: "x", Need: 2, Nodes: nodes(ok, down, down)}, `acquire "x": 1 of 3 servers answered, 2 are needed: a:1: granted; b:1: connection refused; b:1: connection refused`},
		{store.QuorumError{Op: "renew", Name: "x", Need: 2, Nodes: nodes(ok, absent, late)}, `renew "x": 1 of 3 servers agreed, 2 are needed: a:1: done; e:1: absent; c:1: timed out: no answer within 50ms`},
		{store.QuorumError{Op: "acquire", Name: "x", Need: 2, Nodes: nodes(ok, apart, down)}, `acquire "x": 1 of 3 servers can take part, 2 are needed: a:1: granted; d:1: quarantined; b:1: connection refused; if it is certain that nobody holds a lock, redisadmin.Bootstrap (or the command leasehold bootstrap) ends the quarantine at once`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
