package page

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	// heartbeat is how often a browser hears from the server, and slow how long it may take to
	// read that.
	heartbeat = 15 * time.Second
	slow      = 10 * time.Second
)

// live tells a browser each time that the store was looked at (server-sent events). The browser
// then loads its view again.
func (p *Page) live(w http.ResponseWriter, r *http.Request) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many browsers are told of changes already", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep it back
	c := http.NewResponseController(w)
	send := func(text string) error {
		c.SetWriteDeadline(time.Now().Add(slow)) // not every ResponseWriter has deadlines
		if _, err := w.Write([]byte(text)); err != nil {
			return err
		}
		return c.Flush()
	}
	id := p.Observer.Latest().ID
	if send(fmt.Sprintf("retry: 3000\nevent: look\nid: %d\ndata:\n\n", id)) != nil {
		return
	}
	for {
		ctx, cancel := context.WithTimeout(r.Context(), heartbeat)
		v, err := p.Observer.Next(ctx, id)
		cancel()
		text := ":\n\n"
		switch {
		case err == nil:
			id = v.ID
			text = fmt.Sprintf("event: look\nid: %d\ndata:\n\n", id)
		case r.Context().Err() != nil || ctx.Err() == nil:
			return // the browser is gone, or the server ends
		}
		if send(text) != nil {
			return
		}
	}
}
