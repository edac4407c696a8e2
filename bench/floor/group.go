// Package floor is a lower bound for locks on Redis. It only sends the commands and
// counts the answers: written by hand, on one connection to each server, without
// clean-up, time limits, renewal or anything else that makes a lock safe to use.
package floor

import (
	"bufio"
	"errors"
	"net"
	"runtime"
	"sync"

	"github.com/leasehold-dev/leasehold/bench/resp"
)

// group has a connection to each of several servers, and sends the same to all.
type group struct {
	need  int // answers that decide
	conns []*conn

	mu       sync.Mutex
	batch    []byte // what is to be sent next
	list     list   // steps that are to be sent after it
	calls    []call // whose callers wait for the answers
	spare    []byte
	spares   []call
	flushing bool          // somebody is sending
	handed   chan struct{} // the sender is to go on

	broken chan struct{} // closed when a connection has failed
	once   sync.Once
	err    error
	ended  sync.WaitGroup
}

// conn is a connection and the slots that wait for its answers, in order.
type conn struct {
	net.Conn
	r *bufio.Reader

	mu      sync.Mutex
	waiting []call
}

var errClosed = errors.New("floor: closed")

const bufferSize = 64 << 10

// dial connects to the servers and loads the scripts.
func dial(addrs []string, scripts ...string) (*group, error) {
	g := &group{need: len(addrs)/2 + 1, handed: make(chan struct{}, 1), broken: make(chan struct{})}
	for _, addr := range addrs {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			g.close()
			return nil, err
		}
		g.conns = append(g.conns, &conn{Conn: c, r: bufio.NewReaderSize(c, bufferSize)})
		for _, s := range scripts {
			if _, err := resp.Ask(addr, "SCRIPT", "LOAD", s); err != nil {
				g.close()
				return nil, err
			}
		}
	}
	for _, c := range g.conns {
		g.ended.Go(func() { g.read(c) })
	}
	g.ended.Go(g.send)
	return g, nil
}

// do sends a command to all servers. The caller writes it if no other goroutine is
// writing, which saves a wake-up. Otherwise it queues the command for the writer.
func (g *group) do(command []byte, c call) {
	g.mu.Lock()
	g.batch = append(g.batch, command...)
	g.calls = append(g.calls, c)
	g.begin()
}

// doStep is do for a step of a list: keys and args are those of the step in wire format.
func (g *group) doStep(s step, c call) {
	g.mu.Lock()
	if g.calls = append(g.calls, c); g.list.add(s) == mostSteps {
		g.endListLocked()
	}
	g.begin()
}

// endListLocked moves the list into the batch.
func (g *group) endListLocked() {
	if n := g.list.steps; n > 0 {
		g.calls[len(g.calls)-n].steps = n
		g.batch = g.list.end(g.batch)
	}
}

// begin sends what is queued, unless another goroutine does so. It unlocks mu.
func (g *group) begin() {
	if g.flushing {
		g.mu.Unlock()
		return
	}
	g.flushing = true
	g.mu.Unlock()
	g.flush()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.calls) > 0 {
		g.handed <- struct{}{}
		return
	}
	g.flushing = false
}

// send continues to write where a caller stopped.
func (g *group) send() {
	for {
		select {
		case <-g.handed:
		case <-g.broken:
			return
		}
		for {
			g.flush()
			g.mu.Lock()
			if len(g.calls) == 0 {
				g.flushing = false
				g.mu.Unlock()
				break
			}
			g.mu.Unlock()
		}
	}
}

// flush writes the queued commands, after other runnable goroutines have added theirs.
func (g *group) flush() {
	runtime.Gosched()
	g.mu.Lock()
	g.endListLocked()
	batch, calls := g.batch, g.calls
	g.batch, g.calls = g.spare[:0], g.spares[:0]
	g.mu.Unlock()
	for _, c := range g.conns {
		c.mu.Lock()
		c.waiting = append(c.waiting, calls...)
		c.mu.Unlock()
		if _, err := c.Write(batch); err != nil {
			g.fail(err)
		}
	}
	g.mu.Lock()
	g.spare, g.spares = batch, calls
	g.mu.Unlock()
}

// read counts the answers of one server.
func (g *group) read(c *conn) {
	var mine []call
	next := 0
	var unexpected error
	take := func() (one call) {
		if next == len(mine) {
			c.mu.Lock()
			mine, c.waiting = c.waiting, mine[:0]
			c.mu.Unlock()
			next = 0
		}
		if next == len(mine) {
			unexpected = errors.New("floor: unexpected answer")
			return one
		}
		next++
		return mine[next-1]
	}
	answer := func(one call, reply resp.Reply) {
		if unexpected == nil {
			one.answer(reply, g.need, len(g.conns))
		}
	}
	for unexpected == nil {
		reply, err := resp.ReadEach(c.r, func(r resp.Reply) { answer(take(), r) })
		if err != nil {
			g.fail(err)
			return
		}
		if reply.Kind == resp.List {
			continue
		}
		first := take()
		answer(first, reply)
		for range first.steps - 1 { // an error is the answer to the whole list
			answer(take(), reply)
		}
	}
	g.fail(unexpected)
}

func (g *group) fail(err error) {
	g.once.Do(func() {
		g.err = err
		close(g.broken)
	})
}

func (g *group) close() {
	g.fail(errClosed)
	for _, c := range g.conns {
		c.Close()
	}
	g.ended.Wait()
}
