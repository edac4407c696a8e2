package remotestore

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

// gatherer has the goroutines of a program share requests to a server, since a request costs many times
// what a call in a batch does. A call has a request of its own while few requests and no batch are under
// way; see mostSingle. Otherwise it waits until one of them is answered, or for gatherFor, and
// goes in one batch with all calls that wait then. A server answers each call of a batch when it is
// done, so no call waits for the others.
type gatherer struct {
	s *engine

	mu       sync.Mutex
	single   int // requests of one call under way
	batches  int // batches under way
	gathered []*ask
	timer    *time.Timer // sends what has gathered
}

const (
	mostSingle = 4 // requests of one call each, under way at a time
	gatherFor  = 2 * time.Millisecond
	mostAsks   = 256
	mostSpare  = 64 << 10
)

// ask is a call in a batch.
type ask struct {
	call   *call // stays as it is until done is closed
	server int
	done   chan struct{} // closed once what follows is set
	reply  httpapi.Reply
	err    error
}

// appendLine appends the line of a to the body of a batch.
func (a *ask) appendLine(b []byte) []byte {
	line := httpapi.Ask{Do: a.call.verb, NamedRequest: httpapi.NamedRequest{LockName: statejson.NameOf(a.call.name), Request: a.call.request}}
	return line.AppendLine(b)
}

// buffers are memory for the body of a batch, and for a line of the answer.
type buffers struct{ body, line []byte }

var spare = sync.Pool{New: func() any { return &buffers{line: make([]byte, 0, 4<<10)} }}

// send sends c, by itself or in a batch, and returns its answer.
func (g *gatherer) send(ctx context.Context, c *call, server int) (*httpapi.Problem, error) {
	if g.takes() {
		defer g.answered(&g.single)
		ctx, cancel := g.s.gate.Until(ctx)
		defer cancel()
		return g.s.sendAlone(ctx, c, server)
	}
	a := &ask{call: c, server: server, done: make(chan struct{})}
	g.gather(a)
	var ended error
	select {
	case <-a.done:
	case <-ctx.Done():
		ended = ctx.Err()
	case <-g.s.gate.Closing():
		ended = store.ErrClosed
	}
	if ended != nil {
		g.mu.Lock()
		g.gathered = slices.DeleteFunc(g.gathered, func(b *ask) bool { return a == b })
		g.mu.Unlock()
		return nil, ended
	}
	if out, ok := c.out.(*httpapi.Grant); ok && a.reply.Grant != nil {
		*out = *a.reply.Grant
	}
	return a.reply.Problem, a.err
}

// isFreeLocked reports whether a request can go at once.
func (g *gatherer) isFreeLocked() bool { return g.batches == 0 && g.single < mostSingle }

// takes reports whether a call is to be sent by itself, and counts it then.
func (g *gatherer) takes() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isFreeLocked() {
		return false
	}
	g.single++
	return true
}

// gather adds a to the next batch.
func (g *gatherer) gather(a *ask) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gathered = append(g.gathered, a)
	switch {
	case len(g.gathered) == mostAsks, g.isFreeLocked():
		g.goLocked()
	case len(g.gathered) > 1:
	case g.timer == nil:
		g.timer = time.AfterFunc(gatherFor, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.goLocked()
		})
	default:
		g.timer.Reset(gatherFor)
	}
}

// answered counts down one of the requests under way, and lets the next batch go.
func (g *gatherer) answered(under *int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if *under--; g.isFreeLocked() {
		g.goLocked()
	}
}

// gatherMore lets callers that were just answered ask again, so that they go with the next batch.
func (g *gatherer) gatherMore() {
	for before := -1; ; {
		g.mu.Lock()
		n := len(g.gathered)
		g.mu.Unlock()
		if n <= before {
			return
		}
		before = n
		runtime.Gosched()
	}
}

// goLocked sends what has gathered.
func (g *gatherer) goLocked() {
	asks := g.gathered
	if len(asks) == 0 {
		return
	}
	g.gathered = nil
	if g.timer != nil {
		g.timer.Stop()
	}
	g.batches++
	g.s.gate.Stay() // a caller waits, so the gate is not idle yet
	go func() {
		defer g.s.gate.Leave()
		defer g.answered(&g.batches)
		settle(asks, g.s.sendBatch(asks))
		g.gatherMore()
	}()
}

// settle ends the calls that have no answer.
func settle(asks []*ask, err error) {
	for _, a := range asks {
		if a != nil {
			a.err = err
			close(a.done)
		}
	}
}

// sendBatch sends asks, and passes each answer on as it comes. It sets to nil those that have one.
func (s *engine) sendBatch(asks []*ask) error {
	until, cancel := s.gate.Until(context.Background())
	defer cancel()
	ctx, stop := context.WithTimeout(until, s.o.Timeout)
	defer stop()
	memory := spare.Get().(*buffers)
	memory.body = memory.body[:0]
	for _, a := range asks {
		memory.body = a.appendLine(memory.body)
	}
	got, err := s.do(ctx, asks[0].server, http.MethodPost, "/v1/batch", memory.body, "application/x-ndjson")
	if err != nil {
		return err
	}
	if got.problem != nil {
		for i, a := range asks {
			a.reply.Problem = got.problem
			close(a.done)
			asks[i] = nil
		}
		return nil
	}
	defer got.body.Close()
	lines := bufio.NewScanner(got.body)
	lines.Buffer(memory.line, maxAnswer)
	for range asks {
		var err error
		if !lines.Scan() {
			err = cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
		}
		line := lines.Bytes()
		var r httpapi.Reply
		if err == nil {
			r, err = replyOf(line)
		}
		if err == nil && (r.Line < 0 || r.Line >= len(asks) || asks[r.Line] == nil) {
			err = fmt.Errorf("the server answered a call that it was not asked: %s", line)
		}
		if err != nil {
			return err
		}
		a := asks[r.Line]
		asks[r.Line] = nil
		a.reply = r
		close(a.done)
	}
	io.Copy(io.Discard, io.LimitReader(got.body, 1<<16)) // so that the connection is used again
	if cap(memory.body) <= mostSpare {                   // the server has read it all
		spare.Put(memory)
	}
	return nil
}

// replyOf reads a line of the answer to a batch.
func replyOf(line []byte) (httpapi.Reply, error) {
	var r httpapi.Reply
	if r.ReadPlain(line) {
		return r, nil
	}
	var other httpapi.Reply // encoding/json has it on the heap
	err := json.Unmarshal(line, &other)
	return other, err
}
