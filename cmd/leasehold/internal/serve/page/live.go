package page

import (
	"fmt"
	"net/http"

	"github.com/leasehold-dev/leasehold/store"
)

// live tells a browser each time that the store was looked at (server-sent events). The browser
// then loads its view again.
func (p *Page) live(w http.ResponseWriter, r *http.Request) {
	send, done, ok := p.streams.Open(w)
	if !ok {
		return
	}
	defer done()
	id := p.Observer.Latest().ID
	if send(fmt.Sprintf("retry: 3000\nevent: look\nid: %d\ndata:\n\n", id)) != nil {
		return
	}
	for {
		v, err := p.Observer.NextWithin(r, id)
		text := ":\n\n"
		switch {
		case err == nil:
			id = v.ID
			text = fmt.Sprintf("event: look\nid: %d\ndata:\n\n", id)
		case r.Context().Err() != nil || err == store.ErrClosed:
			return // the browser is gone, or the server ends
		}
		if send(text) != nil {
			return
		}
	}
}
