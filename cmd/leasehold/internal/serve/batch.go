package serve

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/store"
)

// mostCalls is the number of calls that a batch can have.
const mostCalls = 1024

// batch answers POST /v1/batch: calls that goroutines of a client make at the same moment. They
// run at the same time, and each is answered with a line once it is done. So a slow call delays
// no other.
func (s *Server) batch(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		s.failWith(w, r, wrongMethod(w, "POST"))
		return
	}
	memory := spare.Get().(*buffers)
	defer memory.free()
	err := s.body(w, r, maxBatch, &memory.body)
	asks := memory.asks
	for line := range bytes.Lines(memory.body.Bytes()) {
		if len(asks) == mostCalls {
			err = refuse(httpapi.TooLarge, fmt.Sprintf("the batch has more than %d calls", mostCalls))
		} else {
			asks = append(asks, httpapi.Ask{})
			if a := &asks[len(asks)-1]; !a.ReadPlain(line) {
				err = decode(line, a)
			}
		}
		if err != nil {
			break // before any of them is done
		}
	}
	memory.asks = asks
	if err != nil {
		s.failWith(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep the lines
	if len(asks) == 0 {
		return
	}
	client := rights.Of(r.Context())
	// Releases go on without the client, since others want the locks.
	released, stop := context.WithTimeout(context.WithoutCancel(r.Context()), s.Patience)
	defer stop()
	b := &batch{s: s, r: r, client: client, who: who(client, addressOf(r)), released: released, replies: make(chan httpapi.Reply, len(asks))}
	for i := range asks {
		b.begin(batched{b: b, line: i, ask: &asks[i]})
	}
	s.Store.Flush()
	rc := http.NewResponseController(w)
	lines := memory.lines[:0]
	for i := range asks {
		if len(b.replies) == 0 {
			runtime.Gosched() // others are done soon
			if len(b.replies) == 0 && len(lines) > 0 {
				w.Write(lines)
				rc.Flush()
				lines = lines[:0]
			}
		}
		reply := <-b.replies
		lines = reply.AppendLine(lines)
		if i == len(asks)-1 {
			w.Write(lines)
			memory.lines = lines
		}
	}
}

// buffers are memory for the body of a batch, what it asks for, and the lines of the answer.
type buffers struct {
	body  bytes.Buffer
	asks  []httpapi.Ask
	lines []byte
}

var spare = sync.Pool{New: func() any { return new(buffers) }}

// Limits of what is kept for the next batch.
const (
	mostSpare     = 64 << 10 // bytes
	mostSpareAsks = 128
)

// free keeps the memory for another batch, unless it is large.
func (m *buffers) free() {
	if m.body.Cap()+cap(m.lines) <= mostSpare && cap(m.asks) <= mostSpareAsks {
		m.body.Reset()
		clear(m.asks)
		m.asks = m.asks[:0]
		spare.Put(m)
	}
}

// batch is a batch that is being done.
type batch struct {
	s        *Server
	r        *http.Request
	client   *rights.Client
	who      string          // the client, to the limits
	released context.Context // of releases
	replies  chan httpapi.Reply
}

// batched is one call of a batch.
type batched struct {
	b     *batch
	line  int
	ask   *httpapi.Ask
	lease store.Lease
}

// begin has a call done.
func (b *batch) begin(c batched) {
	var err error
	if c.lease, err = b.leaseOf(c); err != nil {
		c.answer(nil, problemOf(err))
	} else if b.s.atOnce {
		c.do()
	} else if !c.start() {
		go c.do()
	}
}

// leaseOf returns the lease that a call is about, if the client may make the call.
func (b *batch) leaseOf(c batched) (l store.Lease, err error) {
	if c.line > 0 && !b.s.limits.request(b.who, b.client.Limits.RequestsPerSecond, time.Now()) { // the first was counted with the request
		return l, refuse(httpapi.TooMany, "too many requests in a second")
	}
	name, err := c.ask.Text()
	if err == nil {
		err = store.CheckName(name)
	}
	if err == nil {
		err = b.s.check(b.r, rights.Lock, name)
	}
	if err == nil {
		l, err = ownedLeaseOf(b.r, name, c.ask.Request)
	}
	if err == nil && c.ask.Do != "release" && (c.ask.Do != "acquire" || waits(c.ask.Request)) {
		err = invalid("a batch has calls to acquire, without a wait, and to release")
	}
	return l, err
}

// answer hands on the outcome of the call.
func (c batched) answer(g *httpapi.Grant, p *httpapi.Problem) {
	c.b.replies <- httpapi.Reply{Line: c.line, Grant: g, Problem: p}
}

func (c batched) answerWith(g httpapi.Grant, err error) {
	switch {
	case err != nil:
		c.answer(nil, problemOf(err))
	case c.ask.Do == "release":
		c.answer(nil, nil)
	default:
		c.answer(&g, nil)
	}
}

// start does the call without a goroutine, if the store can do that.
func (c batched) start() bool {
	if c.ask.Do == "release" {
		return c.b.s.startRelease(c.b.released, c.ask.Request, c.lease, func(err error) { c.answerWith(httpapi.Grant{}, err) })
	}
	return c.b.s.startAcquire(c.b.r.Context(), c.ask.Request, c.lease, c.answerWith)
}

// do does the call. A panic, which would end the server here, is a problem of this call.
func (c batched) do() {
	defer func() {
		if bug := recover(); bug != nil {
			c.b.s.Log.Error("a call of a batch panicked: please report this as a bug", "panic", bug, "stack", string(debug.Stack()))
			p := httpapi.New(httpapi.Internal, fmt.Sprint("the server panicked: ", bug))
			p.Ambiguous = true
			c.answer(nil, p)
		}
	}()
	if c.ask.Do == "release" {
		c.answerWith(httpapi.Grant{}, c.b.s.endLease(c.b.released, c.ask.Request, c.lease))
	} else {
		c.answerWith(c.b.s.tryAcquire(c.b.r.Context(), c.ask.Request, c.lease))
	}
}
