package serve

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
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
	body, p := s.body(w, r, maxBatch)
	var asks []httpapi.Ask
	for line := range bytes.Lines(body) {
		var a httpapi.Ask
		if !a.ReadPlain(line) {
			p = decode(line, &a)
		}
		if p == nil && len(asks) == mostCalls {
			p = httpapi.New(httpapi.TooLarge, fmt.Sprintf("the batch has more than %d calls", mostCalls))
		}
		if p != nil {
			break // before any of them is done
		}
		asks = append(asks, a)
	}
	if p != nil {
		s.fail(w, r, p)
		return
	}
	replies := make(chan httpapi.Reply, len(asks))
	for i, a := range asks {
		go func() {
			reply := httpapi.Reply{Line: i}
			if i > 0 && !s.counts(r) { // the first was counted with the request
				reply.Problem = httpapi.New(httpapi.TooMany, "too many requests in a second")
			} else {
				reply.Grant, reply.Problem = s.oneOrBug(r, a)
			}
			replies <- reply
		}()
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep the lines
	rc := http.NewResponseController(w)
	var lines []byte
	for i := range asks {
		reply := <-replies
		if len(replies) == 0 {
			runtime.Gosched() // others are done soon
		}
		if lines = reply.AppendLine(lines); i == len(asks)-1 || len(replies) == 0 {
			w.Write(lines)
			rc.Flush()
			lines = lines[:0]
		}
	}
}

// counts counts one more request of the client of r, and reports whether it may send it.
func (s *Server) counts(r *http.Request) bool {
	c := rights.Of(r.Context())
	return s.limits.request(who(c, addressOf(r)), c.Limits.RequestsPerSecond, time.Now())
}

// oneOrBug is one, and answers a call that panics. A panic in a goroutine of its own would end the
// server.
func (s *Server) oneOrBug(r *http.Request, a httpapi.Ask) (g *httpapi.Grant, p *httpapi.Problem) {
	defer func() {
		if bug := recover(); bug != nil {
			s.Log.Error("a call of a batch panicked: please report this as a bug", "panic", bug, "stack", string(debug.Stack()))
			g, p = nil, httpapi.New(httpapi.Internal, fmt.Sprint("the server panicked: ", bug))
			p.Ambiguous = true
		}
	}()
	return s.one(r, a)
}

// one does one call of a batch.
func (s *Server) one(r *http.Request, a httpapi.Ask) (*httpapi.Grant, *httpapi.Problem) {
	name, err := a.Text()
	if err == nil {
		err = store.CheckName(name)
	}
	if err == nil && !rights.Of(r.Context()).May(rights.Lock, name) {
		s.audit(r, "refused a right", name, slog.String("right", rights.Lock.String()))
		return nil, httpapi.New(httpapi.Forbidden, "this client has no right to lock here")
	}
	var l store.Lease
	if err == nil {
		l, err = ownedLeaseOf(r, name, a.Request)
	}
	var g *httpapi.Grant
	switch {
	case err != nil:
	case a.Do == "release":
		err = s.endLease(r.Context(), a.Request, l)
	case a.Do != "acquire" || waits(a.Request):
		err = invalid("a batch has calls to acquire, without a wait, and to release")
	default:
		var granted httpapi.Grant
		granted, err = s.tryAcquire(r.Context(), a.Request, l)
		g = &granted
	}
	if err != nil {
		return nil, httpapi.ProblemOf(err)
	}
	return g, nil
}
