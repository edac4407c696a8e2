package voice

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// Waiting reports why the command waits for a lock. On a terminal it keeps one
// status line up to date. Otherwise it prints a line when the wait begins, whenever the
// reason changes, and now and then.
type Waiting struct {
	voice *Voice
	name  string
	began time.Time
	limit time.Duration // zero: without a bound

	mu     sync.Mutex
	reason reason
	quit   chan struct{} // not nil while the wait is shown
	ended  chan struct{}
}

func NewWaiting(v *Voice, name string, limit time.Duration) *Waiting {
	return &Waiting{voice: v, name: name, began: time.Now(), limit: limit}
}

// Because records why an attempt did not get the lock.
func (w *Waiting) Because(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.reason
	if busy := (*leasehold.BusyError)(nil); errors.As(err, &busy) && busy.Name != "" {
		w.name = busy.Name // one of several
	}
	w.reason = reasonOf(err, time.Now())
	if !w.voice.Screen && w.reason.key != old.key {
		w.voice.Note("%s", w.line(w.name, time.Now()))
	}
	if w.quit == nil {
		w.quit, w.ended = make(chan struct{}), make(chan struct{})
		go w.show()
	}
}

// The times between the lines of a wait that are no news, which double, and between those of the status.
const (
	firstRepeat = 10 * time.Second
	mostRepeat  = 5 * time.Minute
	refresh     = 500 * time.Millisecond
)

// show keeps the status line up to date. Without one it prints a line now and then, so that a log shows
// that the wait goes on.
func (w *Waiting) show() {
	defer close(w.ended)
	defer w.voice.Status("")
	line := func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.voice.Screen {
			return w.line(elided(w.name), time.Now())
		}
		return w.line(w.name, time.Now())
	}
	for pause := firstRepeat; ; pause = min(2*pause, mostRepeat) {
		if w.voice.Screen {
			pause = refresh
			w.voice.Status(line())
		}
		select {
		case <-time.After(pause):
		case <-w.quit:
			return
		}
		if !w.voice.Screen {
			w.voice.Note("%s", line())
		}
	}
}

// End ends what shows the wait.
func (w *Waiting) End() {
	w.mu.Lock()
	quit := w.quit
	w.mu.Unlock()
	if quit != nil {
		close(quit)
		<-w.ended
	}
}

// line describes the wait at now. Important and changing parts come first, because a
// terminal cuts off the end. name is the name of the lock. The mutex
// must be held.
func (w *Waiting) line(name string, now time.Time) string {
	s := "waiting"
	waited := now.Sub(w.began)
	if waited >= time.Second {
		s += " " + Brief(waited)
	}
	if w.limit > 0 {
		if waited >= time.Second {
			s += " of " + Short(w.limit)
		} else {
			s += " up to " + Short(w.limit)
		}
	}
	s += fmt.Sprintf(" for %q", name)
	switch {
	case w.reason.ahead == 0:
		s += ", next in the queue"
	case w.reason.ahead > 0:
		s += fmt.Sprintf(", %d ahead in the queue", w.reason.ahead)
	}
	return s + "; " + w.reason.words(now)
}

// reason is why a lock is not available.
type reason struct {
	key    string // the same for the same reason
	text   string
	since  time.Time // of the holder; zero when unknown
	ends   time.Time // when its lease does; zero when unknown
	always bool      // it never does
	opens  time.Time // when enough nodes are out of quarantine
	alone  bool      // no command ends the quarantine
	ahead  int       // waiters ahead of us in the queue; -1 when unknown
}

func reasonOf(err error, now time.Time) reason {
	var busy *leasehold.BusyError
	if !errors.As(err, &busy) {
		return troubleOf(err, now)
	}
	if busy.Holder.Waiting {
		return reason{key: "reserved for " + busy.Holder.Owner, text: "reserved for " + busy.Holder.String() + ", which waits too", ahead: busy.Position - 1}
	}
	r := reason{key: "held by " + busy.Holder.Owner, text: "held by " + busy.Holder.String(), since: busy.Holder.Since, ahead: busy.Position - 1}
	if busy.Undecided {
		r.key, r.text = "may be "+r.key, store.Silent(busy.Nodes)+": may be "+r.text
	}
	switch {
	case busy.ExpiresIn < 0:
		r.always = true
	case busy.ExpiresIn > 0:
		r.ends = now.Add(busy.ExpiresIn)
	}
	return r
}

// troubleOf returns the reason if no quorum of nodes could answer.
func troubleOf(err error, now time.Time) reason {
	var quorum *leasehold.QuorumError
	if errors.As(err, &quorum) {
		if d, ok := quorum.OpensIn(); ok {
			n := quorum.Count(store.Quarantined)
			r := reason{key: "quarantine", opens: now.Add(d), ahead: -1}
			if why := quorum.EndsAlone(); why != nil {
				r.alone, r.text = true, fmt.Sprintf("in quarantine (%v)", why)
			} else {
				r.text = fmt.Sprintf("%d of %d nodes are in quarantine", n, len(quorum.Nodes))
			}
			return r
		}
	}
	text := Plain(err)
	if quorum != nil && len(quorum.Nodes) > 1 {
		_, text, _ = strings.Cut(quorum.Summary(), ": ")
		if silent := store.Silent(quorum.Nodes); silent != "" {
			text += ": " + silent
		}
	}
	return reason{key: "trouble", text: text, ahead: -1}
}

// words describes the reason as of now.
func (r reason) words(now time.Time) string {
	s := r.text
	if !r.since.IsZero() && now.After(r.since) { // the holder's clock may be another
		s += " for " + Brief(now.Sub(r.since).Truncate(time.Second))
	}
	switch {
	case r.alone:
		s += " for " + Brief(max(0, r.opens.Sub(now)))
	case !r.opens.IsZero():
		s += " for " + Brief(max(0, r.opens.Sub(now))) + ", since they may have forgotten leases (if nobody can hold a lock, \"leasehold bootstrap\" ends it)"
	case r.always:
		s += ", without an expiry"
	case !r.ends.IsZero():
		s += ", expires in " + Brief(max(0, r.ends.Sub(now))) + " unless renewed"
	}
	return s
}
