package observe

import (
	"context"
	"net/http"
	"time"
)

const (
	// heartbeat is how often a client of a stream hears from the server, and slow how long it may
	// take to read that.
	heartbeat = 15 * time.Second
	slow      = 10 * time.Second
	// mostStreams is the room that Streams have by default.
	mostStreams = 1024
)

// Streams has room for each answer of server-sent events that is under way.
type Streams chan struct{}

// NewStreams returns room for as many streams as one kind of them can have.
func NewStreams() Streams { return make(Streams, mostStreams) }

// Open begins a stream. The caller sends texts, and calls done at the end. Without room Open
// answers that, and returns false.
func (s Streams) Open(w http.ResponseWriter) (send func(text string) error, done func(), ok bool) {
	h := w.Header()
	select {
	case s <- struct{}{}:
	default:
		h.Set("Retry-After", "30")
		http.Error(w, "too many clients follow the changes already", http.StatusServiceUnavailable)
		return nil, nil, false
	}
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would keep it back
	c := http.NewResponseController(w)
	send = func(text string) error {
		c.SetWriteDeadline(time.Now().Add(slow)) // not every ResponseWriter has deadlines
		if _, err := w.Write([]byte(text)); err != nil {
			return err
		}
		return c.Flush()
	}
	return send, func() { <-s }, true
}

// NextWithin is Next for as long as the client of a stream need not hear from the server.
func (o *Observer) NextWithin(r *http.Request, after uint64) (*View, error) {
	ctx, cancel := context.WithTimeout(r.Context(), heartbeat)
	defer cancel()
	return o.Next(ctx, after)
}
