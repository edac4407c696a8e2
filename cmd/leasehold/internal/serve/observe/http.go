package observe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

// silent is how long the store may give no answer before the server is not ready.
const silent = 12 * time.Second

// eventJSON is an event as clients are told it. It is a stable interface.
type eventJSON struct {
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
	After time.Time `json:"after"`
	statejson.LockName
	statejson.Holder
	Token  fence.Token `json:"token,omitempty"`
	From   *fromJSON   `json:"from,omitempty"`
	Cause  string      `json:"cause,omitempty"`
	Broken *brokenJSON `json:"broken,omitempty"`
}

// fromJSON is the lease before a hand-off.
type fromJSON struct {
	statejson.Holder
	Token fence.Token `json:"token,omitempty"`
}

// brokenJSON says who broke a lease, and why.
type brokenJSON struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	Now    bool   `json:"now"`
}

func toJSON(e Event) eventJSON {
	j := eventJSON{Event: string(e.Kind), Time: e.Time.UTC(), After: e.After.UTC(), LockName: statejson.NameOf(e.Name), Holder: statejson.HolderOf(e.Lease.Holder), Token: e.Lease.Token, Cause: e.Cause}
	if e.From != nil {
		j.From = &fromJSON{statejson.HolderOf(e.From.Holder), e.From.Token}
	}
	if b := e.Broken; b != nil {
		j.Broken = &brokenJSON{b.By, b.Reason, b.Now}
	}
	return j
}

// ServeEvents tells a client what happens from now on to the locks with a prefix that it may
// look at, as server-sent events. With Last-Event-ID it is told first what it has missed, as far
// as that is known; the event "missed" says that there was more.
func (o *Observer) ServeEvents(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "events can only be read", http.StatusMethodNotAllowed)
		return
	}
	send, done, ok := o.streams.Open(w)
	if !ok {
		return
	}
	defer done()
	client, prefix := rights.Of(r.Context()), r.URL.Query().Get("prefix")
	v := o.View(r.Context())
	last, ok := o.lastEvent(r.Header.Get("Last-Event-ID"))
	if !ok {
		last = newest(v.Events)
	}
	text := "retry: 3000\n\n"
	for {
		if missed := oldest(v.Events); missed > last+1 {
			text += "event: missed\ndata: {\"event\":\"missed\"}\n\n"
		}
		for _, e := range v.Events {
			if e.ID <= last {
				continue
			}
			last = e.ID
			if !strings.HasPrefix(e.Name, prefix) || !client.May(rights.Look, e.Name) {
				continue
			}
			b, err := json.Marshal(toJSON(e))
			if err != nil {
				panic(err) // strings, numbers and times
			}
			text += fmt.Sprintf("id: %s-%d\nevent: %s\ndata: %s\n\n", o.epoch, e.ID, e.Kind, b)
		}
		if text != "" && send(text) != nil {
			return
		}
		text = ""
		next, err := o.NextWithin(r, v.ID)
		switch {
		case err == nil:
			v = next
		case r.Context().Err() != nil || err == store.ErrClosed:
			return
		default:
			text = ":\n\n"
		}
	}
}

// lastEvent reads the ID of an event that this Observer has told.
func (o *Observer) lastEvent(id string) (n uint64, ok bool) {
	epoch, number, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	return n, err == nil && epoch == o.epoch
}

func newest(events []Event) uint64 {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].ID
}

func oldest(events []Event) uint64 {
	if len(events) == 0 {
		return 0
	}
	return events[0].ID
}

// ServeProbes answers /metrics, /healthz and /readyz. The process is healthy if it answers. It is
// ready if the last look at the store found something, or none has been made for a while.
func (o *Observer) ServeProbes(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this can only be read", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	switch r.URL.Path {
	case "/metrics":
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		o.View(r.Context()).WriteMetrics(w, time.Now())
	case "/healthz":
		fmt.Fprintln(w, "ok")
	case "/readyz":
		v := o.View(r.Context())
		switch {
		case v.ID == 0 || time.Since(v.At) > silent+(part+1)*v.Took:
			http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
		case v.Err != nil && v.SeenAt != v.At:
			http.Error(w, "the store cannot be asked", http.StatusServiceUnavailable) // the page says why, to clients with rights
		default:
			fmt.Fprintln(w, "ok")
		}
	default:
		http.NotFound(w, r)
	}
}
