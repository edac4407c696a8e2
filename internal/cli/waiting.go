package cli

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// waiting tells whoever looks why a lock is waited for: on a terminal in one
// line that is kept up to date, elsewhere in a line when the wait begins and
// one each time there is another reason.
type waiting struct {
	voice *voice
	name  string
	began time.Time
	until time.Time // zero: for ever

	mu     sync.Mutex
	reason reason
	quit   chan struct{} // not nil while a status is kept up to date
	ended  chan struct{}
}

func newWaiting(v *voice, name string, until time.Time) *waiting {
	return &waiting{voice: v, name: name, began: time.Now(), until: until}
}

// because is told why the lock could not be had, each time.
func (w *waiting) because(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.reason
	w.reason = reasonOf(err, time.Now())
	if !w.voice.screen {
		if w.reason.key != old.key {
			w.voice.note("%s", w.line(time.Now()))
		}
		return
	}
	if w.quit == nil {
		w.quit, w.ended = make(chan struct{}), make(chan struct{})
		go w.refresh()
	}
}

func (w *waiting) refresh() {
	defer close(w.ended)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		w.mu.Lock()
		line := w.line(time.Now())
		w.mu.Unlock()
		w.voice.status(line)
		select {
		case <-tick.C:
		case <-w.quit:
			w.voice.status("")
			return
		}
	}
}

// end takes the status away.
func (w *waiting) end() {
	w.mu.Lock()
	quit := w.quit
	w.mu.Unlock()
	if quit != nil {
		close(quit)
		<-w.ended
	}
}

// line is what there is to say at now. The mutex is held.
func (w *waiting) line(now time.Time) string {
	s := fmt.Sprintf("waiting for lock %q: %s", w.name, w.reason.words(now))
	if waited := now.Sub(w.began); waited >= time.Second {
		s += "; waited " + brief(waited)
	}
	if !w.until.IsZero() {
		s += "; giving up in " + brief(max(0, w.until.Sub(now)))
	}
	return s
}

// reason is why a lock could not be had.
type reason struct {
	key    string // the same for the same reason
	text   string
	since  time.Time // of the holder; zero when unknown
	ends   time.Time // when its lease does; zero when unknown
	always bool      // it never does
	opens  time.Time // when enough nodes are out of quarantine
	before int       // how many wait before us; -1 when unknown
}

func reasonOf(err error, now time.Time) reason {
	var busy *leasehold.BusyError
	if !errors.As(err, &busy) {
		return troubleOf(err, now)
	}
	r := reason{key: "held by " + busy.Holder.Owner, text: "held by " + busy.Holder.String(), since: busy.Holder.Since, before: busy.Position - 1}
	switch {
	case busy.ExpiresIn < 0:
		r.always = true
	case busy.ExpiresIn > 0:
		r.ends = now.Add(busy.ExpiresIn)
	}
	return r
}

// troubleOf is why no majority of nodes could say who has the lock.
func troubleOf(err error, now time.Time) reason {
	var quorum *leasehold.QuorumError
	if errors.As(err, &quorum) {
		if d, ok := quorum.OpensIn(); ok {
			n := quorum.Count(store.Quarantined)
			text := fmt.Sprintf("%d of %d nodes may have forgotten who has it", n, len(quorum.Nodes))
			return reason{key: "quarantine", text: text, opens: now.Add(d), before: -1}
		}
	}
	return reason{key: "trouble", text: err.Error(), before: -1}
}

// words is the reason as of now.
func (r reason) words(now time.Time) string {
	s := r.text
	if !r.since.IsZero() && now.After(r.since) { // the holder's clock may be another
		s += " for " + brief(now.Sub(r.since).Truncate(time.Second))
	}
	switch {
	case !r.opens.IsZero():
		s += ", and take part again in " + brief(max(0, r.opens.Sub(now))) + " (leasehold bootstrap says that nobody has it)"
	case r.always:
		s += ", without an expiry"
	case !r.ends.IsZero():
		s += ", expires in " + brief(max(0, r.ends.Sub(now))) + " unless renewed"
	}
	switch {
	case r.before == 0:
		s += "; we are next"
	case r.before > 0:
		s += fmt.Sprintf("; %d before us", r.before)
	}
	return s
}

// brief is d to the second, or to what store.Round leaves of less.
func brief(d time.Duration) string {
	if d >= time.Second {
		return d.Round(time.Second).String()
	}
	return store.Round(d).String()
}
