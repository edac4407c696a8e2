package page

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/observe"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/excerpt"
	"github.com/leasehold-dev/leasehold/store"
)

// askTimeout bounds a question to the store about one lock.
const askTimeout = 2 * time.Second

// one is what the view of one lock has.
type one struct {
	Name, Link, Kind string
	Held             bool
	Undecided        string // which nodes do not answer
	Leases           []breakable
	Waiters          []waiter
	MoreWait         bool // there may be more waiters than the store shows
	Broken           *store.Broken
	Nodes            []node
	Events           []event
	Commands         []command
	Said             string // what a break has done
	Failed           string // why the store, or a break, failed
	Confirm          *confirm
	status           int
	Breaks           string // why leases cannot be broken here; empty: they can
}

// breakable is a lease, and how to break it.
type breakable struct {
	lease
	// BreakURL is where the form is sent; empty: this lease cannot be broken.
	BreakURL string
	Commands []command
	AskBy    bool // the form asks who breaks it
}

type waiter struct {
	Position     int
	Who, Purpose string
	Waited       time.Duration
	Known        bool // how long it has waited
	Left         time.Duration
	Trace        string
	TraceURL     string
}

// node is what a node of the store answers about a lock.
type node struct {
	Name, Outcome, Text string
	Well                bool
}

func nodeOf(n store.NodeOutcome) node {
	v := node{Name: excerpt.Of(n.Node), Outcome: n.Outcome.String(), Well: observe.Well(n)}
	switch {
	case n.Err != nil:
		v.Text = excerpt.Of(n.Err.Error())
	case n.Outcome == store.Taken:
		v.Text = "by " + n.Holder.Process(shortText)
	}
	if n.Outcome == store.Quarantined && n.ExpiresIn > 0 {
		v.Outcome += " for " + brief(n.ExpiresIn)
	}
	return v
}

// said are what a view says after a break.
var said = map[string]string{
	"over":   "The lease is over.",
	"freed":  "The lease is over. Its holder may not know of that before its next renewal: until then, only fencing tokens protect.",
	"broken": "The lease is broken: it cannot be renewed. The lock is free when its holder has stopped, or when the lease runs out.",
}

// lock prepares the view of one lock.
func (p *Page) lock(r *http.Request) (int, *view) {
	q := r.URL.Query()
	v, d := p.oneView(r, q.Get("name"))
	d.Said = said[q.Get("did")]
	return d.status, v
}

// oneView prepares the view of the lock with that name.
func (p *Page) oneView(r *http.Request, name string) (*view, *one) {
	client := rights.Of(r.Context())
	now := time.Now()
	d := &one{Name: excerpt.AtMost(name, longText), Link: link(name), status: http.StatusOK}
	seen := p.Observer.View(r.Context())
	v := p.viewOf(r, "lock", excerpt.AtMost(name, shortText), seen, may(r, seen.Locks), now)
	v.Data = d
	if err := store.CheckName(name); err != nil {
		d.Failed, d.status = store.Excerpt(err.Error()), http.StatusBadRequest
		return v, d
	}
	if !client.May(rights.Look, name) {
		d.Failed, d.status = "This client may not look at the lock.", http.StatusForbidden
		return v, d
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	s, err := p.Observer.Inspect(ctx, name)
	if err != nil {
		d.Failed, d.status = "The store was asked for the lock: "+store.Excerpt(err.Error()), http.StatusBadGateway
		return v, d
	}
	base := baseURL(r, p.Prefix)
	d.Held, d.Undecided = !s.Free(), ""
	if len(s.Undecided) > 0 {
		d.Undecided = store.Silent(s.Nodes)
	}
	d.Breaks = p.cannotBreak(client, name)
	p.addLeases(d, s, seen.Lock(name), client, base, now)
	for i, w := range s.Queue {
		one := waiter{Position: i + 1, Who: w.Holder.Process(longText), Purpose: excerpt.AtMost(w.Holder.Purpose, longText), Left: w.ExpiresIn, Trace: w.Holder.TraceID(), TraceURL: p.traceURL(w.Holder.TraceID())}
		if since := w.Holder.Since; !since.IsZero() {
			one.Waited, one.Known = max(0, now.Sub(since)), true
		}
		d.Waiters = append(d.Waiters, one)
	}
	d.MoreWait = len(s.Queue) >= store.MaxQueue
	if b := s.Broken; b != nil {
		d.Broken = &store.Broken{Token: b.Token, By: excerpt.AtMost(b.By, longText), Reason: excerpt.AtMost(b.Reason, longText), At: b.At, Now: b.Now}
	}
	for _, n := range s.Nodes {
		d.Nodes = append(d.Nodes, nodeOf(n))
	}
	d.Events = eventViews(seen.Events, 50, func(e observe.Event) bool { return e.Name == name })
	d.Commands = lockCommands(base, name)
	if !d.Held {
		d.Commands = append(holdCommands(base, name), d.Commands...)
	}
	return v, d
}

// addLeases prepares the leases of the lock. known is what the observer knows of it, or nil.
func (p *Page) addLeases(d *one, s store.State, known *observe.Lock, client *rights.Client, base string, now time.Time) {
	ttls := map[string]time.Duration{}
	if known != nil {
		for _, l := range known.Leases {
			ttls[l.Holder.Owner] = l.TTL
		}
	}
	held := s.Holdings()
	leases := make([]observe.Lease, 0, len(held)+len(s.Undecided))
	sameToken := map[uint64]int{}
	for i, h := range s.Leases() {
		leases = append(leases, observe.Lease{Holding: h, MayHold: i >= len(held), TTL: ttls[h.Holder.Owner]})
		sameToken[uint64(h.Token)]++
	}
	k := kindOf(observe.Lock{State: s, Leases: leases})
	d.Kind = kindText(k, leases)
	for _, l := range leases {
		b := breakable{lease: p.leaseView(k, l, len(leases) > 1, 0, now, longText), AskBy: client.Name == ""}
		if l.Token != 0 && !l.Holder.Foreign && !l.Holder.Broken && d.Breaks == "" {
			owner := ""
			if sameToken[uint64(l.Token)] > 1 {
				owner = l.Holder.Owner
			}
			u := url.Values{"name": {s.Name}, "token": {strconv.FormatUint(uint64(l.Token), 10)}}
			if owner != "" {
				u.Set("owner", owner)
			}
			b.BreakURL = "break?" + u.Encode()
			b.Commands = breakCommands(base, s.Name, owner, l.Token, "", false)
		}
		d.Leases = append(d.Leases, b)
	}
}

// cannotBreak says why the client cannot break leases of the lock, or "".
func (p *Page) cannotBreak(client *rights.Client, name string) string {
	switch {
	case p.Caps().NoBreaks:
		return "This store cannot break a lease: it ends when its holder is gone, after its TTL."
	case !client.May(rights.Break, name):
		return "This client may not break leases of this lock."
	}
	return ""
}
