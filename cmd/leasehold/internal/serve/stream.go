package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/internal/validity"
)

// stream writes the lines of one answer. Its methods are safe for concurrent use. A goroutine
// that waits for a lock writes nothing itself: news and heartbeats are written by a goroutine
// that runs only meanwhile.
type stream struct {
	w      http.ResponseWriter
	rc     *http.ResponseController
	s      *Server
	sse    bool
	began  clock.Instant      // when the request came
	cancel context.CancelFunc // ends the request of a client that does not read

	writing sync.Mutex // held while a line is written; guards what follows
	started bool       // the header was sent
	closed  bool
	held    func() *httpapi.Grant // what is held now; nil: nothing
	beat    *time.Timer
	silence time.Duration // the longest between two lines
	told    time.Time     // until when the client may believe that it holds the lock
	unread  bool          // the client does not read

	mu      sync.Mutex
	news    error // why the lock is waited for, not written yet
	telling bool  // a goroutine writes news
}

// stream returns the stream that answers r, and the context of what it is about, which ends
// when the client is gone, when it does not read, or when the server leaves.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) (context.Context, *stream) {
	ctx, cancel := context.WithCancel(r.Context())
	st := &stream{w: w, rc: http.NewResponseController(w), s: s, began: s.clock.Now(), cancel: cancel, silence: s.Heartbeat}
	st.sse = strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	st.writing.Lock()
	defer st.writing.Unlock()
	st.beat = time.AfterFunc(st.silence, st.alive)
	return ctx, st
}

// at is the time since the request came.
func (st *stream) at() time.Duration { return st.s.clock.Now().Sub(st.began) }

// sendLocked writes a line. It blocks for as long as the server is patient with the client.
func (st *stream) sendLocked(e httpapi.Event) {
	if st.closed {
		return
	}
	if !st.started {
		h := st.w.Header()
		h.Set("Content-Type", "application/x-ndjson")
		if st.sse {
			h.Set("Content-Type", "text/event-stream")
		}
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // nginx would keep the lines
		st.started = true
	}
	b, err := json.Marshal(e)
	if err == nil {
		st.rc.SetWriteDeadline(time.Now().Add(st.s.Patience))
		if st.sse {
			b = append(append([]byte("event: "+e.Event+"\ndata: "), b...), '\n')
		}
		if _, err = st.w.Write(append(b, '\n')); err == nil {
			err = st.rc.Flush()
		}
	}
	if e.Grant != nil {
		st.told = time.Now().Add(e.Grant.Valid.Duration())
	}
	if err != nil {
		st.unread = errors.Is(err, os.ErrDeadlineExceeded)
		st.cancel()
	}
	st.beat.Reset(st.silence)
}

// alive writes a heartbeat. Once the lock is held, the line says for how long.
func (st *stream) alive() {
	st.writing.Lock()
	defer st.writing.Unlock()
	e := httpapi.Event{Event: "alive"}
	if st.held != nil {
		e = httpapi.Event{Event: "held", Grant: st.held()}
	}
	st.sendLocked(e)
}

// waits tells why the lock is waited for. It does not block, and drops earlier news that was not
// written.
func (st *stream) waits(reason error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.news = reason
	if !st.telling {
		st.telling = true
		go st.tell()
	}
}

func (st *stream) tell() {
	for {
		st.writing.Lock()
		st.mu.Lock()
		reason := st.news
		st.news = nil
		st.telling = reason != nil
		st.mu.Unlock()
		if reason != nil && st.held == nil {
			p := httpapi.ProblemOf(reason)
			p.Title, p.Status, p.Advice = "", 0, ""
			st.sendLocked(httpapi.Event{Event: "waiting", Problem: p})
		}
		st.writing.Unlock()
		if reason == nil {
			return
		}
	}
}

// hold says that the lock is held. From now on each heartbeat says for how long: held is called
// for each. They come as often as a lease of this TTL is renewed, or the client would believe
// that it has ended.
func (st *stream) hold(ttl time.Duration, held func() *httpapi.Grant) {
	st.writing.Lock()
	defer st.writing.Unlock()
	st.held = held
	st.silence = min(st.silence, validity.RenewAfter(ttl))
	st.sendLocked(httpapi.Event{Event: "held", Grant: held()})
}

// end writes the last line, if there is one. If nothing was written before, it answers with the
// problem of e instead.
func (st *stream) end(r *http.Request, e *httpapi.Event) {
	st.writing.Lock()
	defer st.writing.Unlock()
	if e != nil && !st.started && e.Problem != nil {
		if e.Problem.Status == 0 {
			e.Problem = httpapi.New(e.Problem.Kind(), e.Problem.Detail)
		}
		st.s.fail(st.w, r, e.Problem)
	} else if e != nil {
		st.sendLocked(*e)
	}
	st.closed = true
	st.beat.Stop()
	st.cancel()
}

// believed returns until when a client that did not end the request itself may believe that it
// holds the lock: it may live on without a connection. It returns false if the client knows that
// it does not.
func (st *stream) believed(r *http.Request) (until time.Time, ok bool) {
	st.writing.Lock()
	defer st.writing.Unlock()
	return st.told, st.unread || isBroken(r)
}

// failed is the last line of a wait that failed.
func failed(err error) *httpapi.Event {
	return &httpapi.Event{Event: "failed", Problem: problemOf(err)}
}

// leaving is the last line of a stream of a server that ends.
func leaving(g *httpapi.Grant) *httpapi.Event {
	if g == nil {
		return &httpapi.Event{Event: "leaving", Problem: httpapi.New(httpapi.Closing, "the server is about to end")}
	}
	return &httpapi.Event{Event: "leaving", Grant: g}
}
