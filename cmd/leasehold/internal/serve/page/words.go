package page

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/observe"
	"github.com/leasehold-dev/leasehold/internal/excerpt"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

// How many bytes of what others wrote a view shows: a line of a list, and a view of one lock.
const (
	shortText = 90
	longText  = 4096
)

// brief writes a duration for people, to the second. page.js does the same.
func brief(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh %02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd %02dh", s/86400, s/3600%24)
}

func clockTime(t time.Time) string { return t.Local().Format("15:04:05") }
func stamp(t time.Time) string     { return t.UTC().Format(time.RFC3339) }

// link is the address of the view of a lock, relative to the other views. It holds any name that
// a lock can have. One that is too long, of another kind of client, leads to a view that says so.
func link(name string) string {
	return "lock?name=" + url.QueryEscape(name[:min(len(name), store.MaxName+1)])
}

// lease is a lease as views show it.
type lease struct {
	Owner, Who, Purpose string
	// Trace is the number of the trace, and TraceURL where to see it.
	Trace, TraceURL string
	Part            string // what it has of a lock that several hold
	Token           string
	Marks           []mark
	Held            time.Duration // zero: unknown
	Left, TTL       time.Duration // Left is negative if it never ends
	Low             bool          // little is left
	Since           time.Time
}

// mark is a word about a lease that needs attention.
type mark struct{ Word, Meaning string }

// leaseView prepares a lease that was seen before age.
func (p *Page) leaseView(k store.Kind, l observe.Lease, several bool, age time.Duration, now time.Time, most int) lease {
	h := l.Holder
	v := lease{Owner: excerpt.AtMost(h.Owner, most), Purpose: excerpt.AtMost(h.Purpose, most), Trace: h.TraceID(), Part: partOf(k, l.Holding, several), TTL: max(l.TTL, l.ExpiresIn), Left: l.ExpiresIn, Since: h.Since}
	v.Who = h.Process(most)
	v.TraceURL = p.traceURL(v.Trace)
	if l.Token != 0 {
		v.Token = l.Token.String()
	}
	if v.Left >= 0 {
		v.Left = max(0, v.Left-age)
		v.Low = v.Left < v.TTL/3
	}
	switch {
	case l.HeldFor > 0:
		v.Held = l.HeldFor + age
	case !h.Since.IsZero():
		v.Held = now.Sub(h.Since)
	}
	if l.MayHold {
		v.Marks = append(v.Marks, mark{"may hold it", "It depends on nodes that do not answer whether this lease holds the lock."})
	}
	if h.Broken {
		v.Marks = append(v.Marks, mark{"broken", "An operator broke this lease: it cannot be renewed."})
	}
	if h.Foreign {
		v.Marks = append(v.Marks, mark{"foreign", "Another kind of client made this lock."})
	}
	if h.Unrenewed {
		v.Marks = append(v.Marks, mark{"not renewed", "Nobody renews this lease: its holder counts on the TTL."})
	}
	return v
}

// traceURL is where to see a trace, or "".
func (p *Page) traceURL(trace string) string {
	if trace == "" || p.TraceURL == "" {
		return ""
	}
	return strings.ReplaceAll(p.TraceURL, "{trace}", trace)
}

// partOf says what a lease has of a lock that several hold.
func partOf(k store.Kind, h store.Holding, several bool) string {
	switch {
	case k.IsMutex() && !several:
		return ""
	case k.Shared:
		return statejson.ModeOf(k, h)
	case h.Weight > 1:
		return fmt.Sprintf("slot %d, %d permits", h.Slot, h.Weight)
	}
	return fmt.Sprintf("slot %d", h.Slot)
}

// kindText says what kind of lock it is, and how much of it is held.
func kindText(k store.Kind, leases []observe.Lease) string {
	if k.IsMutex() || k.Shared {
		return k.String()
	}
	used := int64(0)
	for _, l := range leases {
		used += l.Weight
	}
	return fmt.Sprintf("semaphore, %d of %d", used, k.Limit)
}

// kindOf is the kind of a lock that may be undecided.
func kindOf(l observe.Lock) store.Kind {
	if !l.Held && len(l.Leases) > 0 {
		return l.Leases[0].Kind
	}
	return l.Kind
}

// verbs are what views call the kinds of events.
var verbs = map[observe.Kind]string{
	observe.Acquired: "acquired", observe.HandedOver: "handed over", observe.Released: "released",
	observe.Lost: "lost", observe.Broken: "broken", observe.Over: "over",
}

// event is an event as views show it.
type event struct {
	ID    uint64
	Time  time.Time
	After time.Time // zero unless it is long before
	Kind  string
	Verb  string
	Name  string
	Link  string
	Text  string
	Bad   bool
}

// longAgo is the time between two looks that is worth saying.
const longAgo = 15 * time.Second

func eventView(e observe.Event) event {
	v := event{ID: e.ID, Time: e.Time, Kind: string(e.Kind), Verb: verbs[e.Kind], Name: excerpt.AtMost(e.Name, shortText), Link: link(e.Name), Bad: e.Kind == observe.Lost || e.Kind == observe.Broken}
	if e.Time.Sub(e.After) > longAgo {
		v.After = e.After
	}
	holder := holderText(e.Lease.Holder)
	held := ""
	if d := e.Lease.HeldFor; d >= time.Second {
		held = " after " + brief(d)
	}
	switch {
	case e.From != nil:
		v.Text = "from " + holderText(e.From.Holder) + " to " + holder
	case e.Kind == observe.Acquired:
		v.Text = "by " + holder
	case e.Kind == observe.Lost && e.Cause == observe.CauseBroken:
		v.Text = "by " + holder + held + ": its broken lease is over"
	case e.Kind == observe.Lost:
		v.Text = "by " + holder + held + ": its lease ran out, since it was not renewed"
	case e.Kind == observe.Over && e.Lease.Holder.Unrenewed:
		v.Text = "for " + holder + held + ": its TTL has passed"
	case e.Kind == observe.Over:
		v.Text = "for " + holder + held + ": released, or not renewed in time"
	case e.Kind == observe.Broken && e.Broken != nil:
		v.Text = "the lease of " + holder + " was " + e.Broken.String()
	case e.Kind == observe.Broken:
		v.Text = "the lease of " + holder
	default:
		v.Text = "by " + holder + held
	}
	return v
}

// holderText names a holder with its purpose, in a line.
func holderText(h store.Holder) string {
	s := h.Process(shortText)
	if h.Purpose != "" {
		s += " (" + excerpt.AtMost(h.Purpose, shortText) + ")"
	}
	return s
}

// eventViews returns the latest of events that keep wants, newest first.
func eventViews(events []observe.Event, most int, keep func(observe.Event) bool) (list []event) {
	for i := len(events) - 1; i >= 0 && len(list) < most; i-- {
		if keep(events[i]) {
			list = append(list, eventView(events[i]))
		}
	}
	return list
}
