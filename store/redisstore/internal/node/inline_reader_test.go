//go:build unix

package node

import (
	"bufio"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
)

// asker sends one question after the other.
type asker struct {
	over chan struct{}
	self atomic.Int64 // answers that it has read itself
}

func (a *asker) Receive(int, int, driver.Reply) {
	if strings.Contains(string(debug.Stack()), ").ReadInline(") {
		a.self.Add(1)
	}
	a.over <- struct{}{}
}

func (a *asker) ask(t *testing.T, n *Node) {
	t.Helper()
	if err := n.Enqueue(Call{Command: PingCommand, Timeout: time.Minute, To: a}, true); err != nil {
		t.Fatal(err)
	}
	n.Flush()
	n.ReadInline(t.Context(), a.over, nil)
	<-a.over
}

// A single caller reads its answers inline, even if part of one or all of it comes late.
func TestCallerReadsItsReply(t *testing.T) {
	n, server := bareNode(t)
	var slow atomic.Bool
	go func() {
		in := bufio.NewReader(server)
		for k := 0; ; k++ {
			for range strings.Count(string(PingCommand.Bytes), "\n") {
				if _, err := in.ReadString('\n'); err != nil {
					return
				}
			}
			answer := "+PONG\r\n"
			if slow.Load() {
				cut := k % 3
				server.Write([]byte(answer[:cut]))
				time.Sleep(2 * conn.InlineFor) // a slow server; no check depends on it
				answer = answer[cut:]
			}
			server.Write([]byte(answer))
		}
	}()
	a := &asker{over: make(chan struct{}, 1)}
	for start := time.Now(); a.self.Load() < 3; {
		if a.ask(t, n); time.Since(start) > time.Minute {
			t.Fatalf("the caller read %d answers itself, want at least 3", a.self.Load())
		}
	}
	slow.Store(true)
	for range 9 {
		a.ask(t, n)
	}
	// Several callers all get their answers.
	slow.Store(false)
	all := make(chan *asker)
	for range 4 {
		go func() {
			b := &asker{over: make(chan struct{}, 1)}
			for range 100 {
				b.ask(t, n)
			}
			all <- b
		}()
	}
	for range 4 {
		<-all
	}
}
