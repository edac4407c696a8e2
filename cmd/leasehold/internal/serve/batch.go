package serve

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
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
// run at the same time, and each is answered with a line once it is done. So one that is slow
// holds up no other.
func (s *Server) batch(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		s.wrongMethod(w, r, "POST")
		return
	}
	memory := spare.Get().(*buffers)
	defer memory.free()
	p := s.body(w, r, maxBatch, &memory.body)
	asks := memory.asks
	for line := range bytes.Lines(memory.body.Bytes()) {
		if len(asks) == mostCalls {
			p = httpapi.New(httpapi.TooLarge, fmt.Sprintf("the batch has more than %d calls", mostCalls))
		} else {
			asks = append(asks, httpapi.Ask{})
			if a := &asks[len(asks)-1]; !a.ReadPlain(line) {
				p = decode(line, a)
			}
		}
		if p != nil {
			break // before any of them is done
		}
	}
	memory.asks = asks
	if p != nil {
		s.fail(w, r, p)
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
		if c := (batched{b, i, &asks[i]}); s.atOnce {
			c.do()
		} else {
			s.workers.Run(c)
		}
	}
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
	b    *batch
	line int
	ask  *httpapi.Ask
}

// do does the call. A panic, which would end the server here, is a problem of this call.
func (c batched) do() {
	reply := httpapi.Reply{Line: c.line}
	defer func() {
		if bug := recover(); bug != nil {
			c.b.s.Log.Error("a call of a batch panicked: please report this as a bug", "panic", bug, "stack", string(debug.Stack()))
			reply.Problem = httpapi.New(httpapi.Internal, fmt.Sprint("the server panicked: ", bug))
			reply.Problem.Ambiguous = true
		}
		c.b.replies <- reply
	}()
	if c.line > 0 && !c.b.s.limits.request(c.b.who, c.b.client.Limits.RequestsPerSecond, time.Now()) { // the first was counted with the request
		reply.Problem = httpapi.New(httpapi.TooMany, "too many requests in a second")
		return
	}
	reply.Grant, reply.Problem = c.b.one(*c.ask)
}

// one does one call.
func (b *batch) one(a httpapi.Ask) (*httpapi.Grant, *httpapi.Problem) {
	name, err := a.Text()
	if err == nil {
		err = store.CheckName(name)
	}
	if err == nil && !b.client.May(rights.Lock, name) {
		b.s.audit(b.r, "refused a right", name, slog.String("right", rights.Lock.String()))
		return nil, httpapi.New(httpapi.Forbidden, "this client has no right to lock here")
	}
	var l store.Lease
	if err == nil {
		l, err = ownedLeaseOf(b.r, name, a.Request)
	}
	var g *httpapi.Grant
	switch {
	case err != nil:
	case a.Do == "release":
		err = b.s.endLease(b.released, a.Request, l)
	case a.Do != "acquire" || waits(a.Request):
		err = invalid("a batch has calls to acquire, without a wait, and to release")
	default:
		g = new(httpapi.Grant)
		*g, err = b.s.tryAcquire(b.r.Context(), a.Request, l)
	}
	if err != nil {
		return nil, httpapi.ProblemOf(err)
	}
	return g, nil
}
