//go:build unix

package redisstore

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

// asker wants one answer after the other.
type asker struct {
	over chan struct{}
	self atomic.Int64 // so many it has read by itself
}

func (a *asker) Receive(int, int, driver.Reply) {
	if strings.Contains(string(debug.Stack()), ").ReadInline(") {
		a.self.Add(1)
	}
	a.over <- struct{}{}
}

func (a *asker) ask(t *testing.T, n *node) {
	t.Helper()
	if err := n.put(call{command: pingCommand, timeout: time.Minute, to: a}, true); err != nil {
		t.Fatal(err)
	}
	n.Flush()
	n.ReadInline(t.Context(), a.over, nil)
	<-a.over
}

// A caller that is alone reads the answers inline, even one of which the rest comes
// late; and one that comes late altogether is not missed.
func TestCallerReadsItsReply(t *testing.T) {
	n, server := bareNode(t)
	var slow atomic.Bool
	go func() {
		in := bufio.NewReader(server)
		for k := 0; ; k++ {
			for range strings.Count(string(pingCommand.Bytes), "\n") {
				if _, err := in.ReadString('\n'); err != nil {
					return
				}
			}
			answer := "+PONG\r\n"
			if slow.Load() {
				cut := k % 3
				server.Write([]byte(answer[:cut]))
				time.Sleep(2 * conn.InlineFor) // it is slow, which nobody waits for to happen
				answer = answer[cut:]
			}
			server.Write([]byte(answer))
		}
	}()
	a := &asker{over: make(chan struct{}, 1)}
	for start := time.Now(); a.self.Load() < 3; {
		if a.ask(t, n); time.Since(start) > time.Minute {
			t.Fatalf("%d of the callers read the answer themselves", a.self.Load())
		}
	}
	slow.Store(true)
	for range 9 {
		a.ask(t, n)
	}
	// Others have their answers, too.
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
