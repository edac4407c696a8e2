package page

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/observe"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/excerpt"
)

// onePage is how many locks the list shows at a time, and recent how many events beside it.
const (
	onePage = 100
	recent  = 12
	// mostLeases is how many holders of a lock the list shows.
	mostLeases = 8
)

// list is what the view of all locks has.
type list struct {
	Prefix, Sort   string
	Columns        []column
	Rows           []row
	Total          int
	From, To       int
	Previous, Next string // links; empty: there is none
	First, Last    string
	Events         []event
	EventsLink     string
	Commands       []command
	Hold           []command
	RefreshLink    string
	All            int // locks without the filter
}

// column is the head of a column that the list can be sorted by.
type column struct {
	Name, Link, Sorted string
	Class              string
}

// row is one lock in the list.
type row struct {
	Name, Link, Key, Kind string
	Leases                []lease
	More                  int // leases that are not shown
	Waiting               int
	Known                 bool // whether there are waiters
	First                 time.Duration
	FirstWho              string
}

// orders are what the list can be sorted by, besides the name.
var orders = map[string]func(a, b *observe.Lock) int{
	"held":    func(a, b *observe.Lock) int { return cmp.Compare(heldFor(b), heldFor(a)) },
	"ends":    func(a, b *observe.Lock) int { return cmp.Compare(left(a), left(b)) },
	"waiting": func(a, b *observe.Lock) int { return cmp.Compare(len(b.Queue), len(a.Queue)) },
}

func heldFor(l *observe.Lock) (d time.Duration) {
	for _, h := range l.Leases {
		d = max(d, h.HeldFor)
	}
	return d
}

// left is how much is left of the lease that ends first. A lease that never ends comes last.
func left(l *observe.Lock) time.Duration {
	least := time.Duration(1<<63 - 1)
	for _, h := range l.Leases {
		if h.ExpiresIn >= 0 {
			least = min(least, h.ExpiresIn)
		}
	}
	return least
}

// locks prepares the view of all locks.
func (p *Page) locks(r *http.Request) (int, *view) {
	q := r.URL.Query()
	seen := p.Observer.View(r.Context())
	if rights.Of(r.Context()).May(rights.Look, "") {
		p.examineSometimes(examineFirst)
	}
	now := time.Now()
	all := may(r, seen.Locks)
	prefix := q.Get("prefix")
	found := all
	if prefix != "" {
		found = may(r, seen.Under(prefix))
	}
	v := p.viewOf(r, "locks", "Locks", seen, all, now)
	d := &list{Prefix: prefix, Sort: q.Get("sort"), Total: len(found), All: len(all)}
	if order, ok := orders[d.Sort]; ok {
		found = slices.Clone(found)
		slices.SortStableFunc(found, func(a, b observe.Lock) int { return order(&a, &b) })
	} else {
		d.Sort = ""
	}

	pages := max(1, (len(found)+onePage-1)/onePage)
	n, _ := strconv.Atoi(q.Get("page"))
	n = min(max(n, 1), pages)
	to := func(page int, sort string) string {
		u := url.Values{}
		if prefix != "" {
			u.Set("prefix", prefix)
		}
		if sort != "" {
			u.Set("sort", sort)
		}
		if page > 1 {
			u.Set("page", strconv.Itoa(page))
		}
		return "?" + u.Encode()
	}
	if n > 1 {
		d.First, d.Previous = to(1, d.Sort), to(n-1, d.Sort)
	}
	if n < pages {
		d.Next, d.Last = to(n+1, d.Sort), to(pages, d.Sort)
	}
	for _, c := range []column{{Name: "Lock"}, {Name: "Holder", Class: "holder"}, {Name: "Token"}, {Name: "Held for", Link: "held", Class: "num"}, {Name: "Ends in", Link: "ends"}, {Name: "Waiting", Link: "waiting"}} {
		if c.Link != "" || c.Name == "Lock" {
			if c.Link == d.Sort {
				c.Sorted = map[string]string{"": "ascending", "ends": "ascending", "held": "descending", "waiting": "descending"}[d.Sort]
			}
			c.Link = to(1, c.Link)
		}
		d.Columns = append(d.Columns, c)
	}
	d.From = (n - 1) * onePage
	d.To = min(d.From+onePage, len(found))
	var names []string
	for _, l := range found[d.From:d.To] {
		names = append(names, l.Name)
		d.Rows = append(d.Rows, p.row(l, now, seen))
	}
	p.Observer.Want(names...)
	d.From = min(d.From+1, d.To)

	client := rights.Of(r.Context())
	d.Events = eventViews(seen.Events, recent, func(e observe.Event) bool {
		return strings.HasPrefix(e.Name, prefix) && client.May(rights.Look, e.Name)
	})
	d.EventsLink = "events"
	if prefix != "" {
		d.EventsLink += "?" + url.Values{"prefix": {prefix}}.Encode()
	}
	base := baseURL(r, p.Prefix)
	d.Commands = listCommands(base, prefix)
	d.Hold = holdCommands(base, "hello")
	q.Set("refresh", "5")
	d.RefreshLink = "?" + q.Encode()
	v.Data = d
	return http.StatusOK, v
}

// row prepares one lock of the list.
func (p *Page) row(l observe.Lock, now time.Time, seen *observe.View) row {
	k := kindOf(l)
	v := row{Name: excerpt.AtMost(l.Name, shortText), Link: link(l.Name), Key: link(l.Name), Kind: kindText(k, l.Leases), Waiting: len(l.Queue), Known: !l.InspectedAt.IsZero()}
	age := now.Sub(seen.SeenAt)
	if k.IsMutex() {
		v.Kind = "" // most locks are mutexes
	}
	for i, h := range l.Leases {
		if i == mostLeases {
			v.More = len(l.Leases) - i
			break
		}
		v.Leases = append(v.Leases, p.leaseView(k, h, len(l.Leases) > 1, age, now, shortText))
	}
	if len(l.Queue) > 0 {
		first := l.Queue[0].Holder
		v.FirstWho = first.Process(shortText)
		if !first.Since.IsZero() {
			v.First = max(0, now.Sub(first.Since))
		}
	}
	return v
}
