package node

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// inOrder checks that the answers come in the order of the questions.
type inOrder struct {
	t    *testing.T
	next int
	all  int
	done chan struct{}
}

func (r *inOrder) Receive(_, tag int, _ driver.Reply) {
	if tag != r.next {
		r.t.Errorf("got the answer to question %d, want %d", tag, r.next)
	}
	if r.next++; r.next == r.all {
		close(r.done)
	}
}

// bareNode returns the only node of a store, and the server's end of its connection.
func bareNode(t *testing.T) (*Node, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })

	s := bareStore(config.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.System(), ConnectTimeout: time.Minute})
	s.Size = 1
	n := New(0, config.Address{Host: l.Addr().String()}, s)
	t.Cleanup(n.Shut)
	w := sessionOver(n, conn)
	n.Mu.Lock()
	defer n.Mu.Unlock()
	n.UseLocked(&w.Pipe, time.Now().Add(time.Hour)) // so late that the connection is not probed on a slow machine
	return n, server
}

// A server that does not read does not block the sender. Commands that do not fit into the
// buffers of the system arrive later, once and in order.
func TestSendingNeverBlocks(t *testing.T) {
	const questions = 500
	size := 32 << 20 // more than any system buffers for a server that does not read
	var commands []*script.Command
	var want bytes.Buffer
	for i := range questions {
		c := script.NewCommand("ECHO", string(bytes.Repeat([]byte{byte('a' + i%26)}, size)))
		commands = append(commands, c)
		want.Write(c.Bytes)
		size = 1 << 10
	}

	n, server := bareNode(t)
	answers := &inOrder{t: t, all: questions, done: make(chan struct{})}
	for i, c := range commands {
		if err := n.Enqueue(Call{Command: c, Timeout: time.Minute, To: answers, Tag: i}, true); err != nil {
			t.Fatal(err)
		}
		n.Flush()
	}
	got := make([]byte, want.Len())
	if _, err := io.ReadFull(server, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("the server did not receive what was sent")
	}
	if _, err := server.Write(bytes.Repeat([]byte("+OK\r\n"), questions)); err != nil {
		t.Fatal(err)
	}
	<-answers.done
}
