package page

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/observe"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
)

// history is what the view of the events has.
type history struct {
	Prefix string
	Only   string // the kind that is shown
	Kinds  []choice
	Events []event
	Kept   int
}

// choice is a link to a part of a view.
type choice struct {
	Name, Link string
	Chosen     bool
}

// events prepares the view of what has changed.
func (p *Page) events(r *http.Request) (int, *view) {
	q := r.URL.Query()
	seen := p.Observer.View(r.Context())
	now := time.Now()
	client := rights.Of(r.Context())
	d := &history{Prefix: q.Get("prefix"), Only: q.Get("only"), Kept: len(seen.Events)}
	to := func(only string) string {
		u := url.Values{}
		if d.Prefix != "" {
			u.Set("prefix", d.Prefix)
		}
		if only != "" {
			u.Set("only", only)
		}
		return "events?" + u.Encode()
	}
	d.Kinds = []choice{{"all", to(""), d.Only == ""}}
	for _, k := range []observe.Kind{observe.HandedOver, observe.Lost, observe.Broken, observe.Acquired, observe.Released, observe.Over} {
		d.Kinds = append(d.Kinds, choice{verbs[k], to(string(k)), d.Only == string(k)})
	}
	d.Events = eventViews(seen.Events, len(seen.Events), func(e observe.Event) bool {
		return strings.HasPrefix(e.Name, d.Prefix) && (d.Only == "" || d.Only == string(e.Kind)) && client.May(rights.Look, e.Name)
	})
	v := p.viewOf(r, "events", "Events", seen, may(r, seen.Locks), now)
	v.Data = d
	return http.StatusOK, v
}
