package page

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/excerpt"
	"github.com/leasehold-dev/leasehold/store"
)

// An examination takes seconds and tries things on the store, so it is made when somebody looks
// at the health, once in examineAgain at most, and for the other views only the first time.
const (
	examineAgain   = time.Minute
	examineFirst   = time.Hour
	examineTimeout = time.Minute
)

// health is what the doctor said last.
type health struct {
	mu       sync.Mutex
	under    chan struct{} // closed when the examination under way ends; nil: none is
	at       time.Time
	findings []doctor.Finding
	err      error
}

// verdict is what the doctor said, in a word.
type verdict struct {
	Word string // empty: nothing yet
	Bad  string // "error" or "warning"
}

func (h *health) verdict() verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	errors, warnings := 0, 0
	for _, f := range h.findings {
		switch f.Severity {
		case doctor.Error:
			errors++
		case doctor.Warning:
			warnings++
		}
	}
	switch {
	case h.at.IsZero():
		return verdict{}
	case h.err != nil:
		return verdict{"unknown", "warning"}
	case errors > 0:
		return verdict{counted(errors, "error"), "error"}
	case warnings > 0:
		return verdict{counted(warnings, "warning"), "warning"}
	}
	return verdict{"ok", ""}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// examineSometimes has the store examined if the last examination is older than that. It returns
// a channel that is closed when none is under way, and does not block.
func (p *Page) examineSometimes(older time.Duration) <-chan struct{} {
	h := &p.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.under != nil {
		return h.under
	}
	done := make(chan struct{})
	if p.Examine == nil || !h.at.IsZero() && time.Since(h.at) < older {
		close(done)
		return done
	}
	h.under = done
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), examineTimeout)
		defer cancel()
		findings, err := p.Examine(ctx)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.at, h.findings, h.err, h.under = time.Now(), findings, err, nil
	}()
	return done
}

// checkup is what the view of the health has.
type checkup struct {
	Can      bool // the store can be examined
	At       time.Time
	Failed   string
	Findings []doctor.Finding
	Caps     []fact
	Nodes    []node
}

type fact struct{ Name, Text string }

// healthView prepares the view of the store's health.
func (p *Page) healthView(r *http.Request) (int, *view) {
	seen := p.Observer.View(r.Context())
	if !rights.Of(r.Context()).May(rights.Look, "") {
		v := p.viewOf(r, "failure", "Health", seen, nil, time.Now())
		v.Data = "This client may look at some locks only, and not at the store."
		return http.StatusForbidden, v
	}
	wait := time.NewTimer(askTimeout)
	defer wait.Stop()
	select {
	case <-p.examineSometimes(examineAgain):
	case <-wait.C:
	case <-r.Context().Done():
	}
	d := &checkup{Can: p.Examine != nil}
	h := &p.health
	h.mu.Lock()
	d.At = h.at
	if h.err != nil {
		d.Failed = excerpt.Of(h.err.Error())
	}
	for _, f := range h.findings {
		f.Node, f.Message = excerpt.Of(f.Node), excerpt.AtMost(f.Message, longText)
		d.Findings = append(d.Findings, f)
	}
	h.mu.Unlock()

	for _, n := range seen.Nodes {
		one := nodeOf(n)
		if one.Well {
			one.Outcome, one.Text = "answers", ""
		}
		d.Nodes = append(d.Nodes, one)
	}
	c := p.Caps()
	d.Caps = []fact{{"Engine", c.Engine}, {"Guarantee", c.Class.String()}, {"Excludes within", c.Reach}, {"TTLs are counted by", c.Clock}}
	if c.Nodes > 1 {
		d.Caps = append(d.Caps, fact{"Servers", fmt.Sprintf("%d, of which %d have to agree", c.Nodes, c.Quorum)})
	}
	if c.MaxTTL > 0 && c.MaxTTL < 366*24*time.Hour {
		d.Caps = append(d.Caps, fact{"Longest TTL", brief(c.MaxTTL)})
	}
	if seen.ID > 0 {
		d.Caps = append(d.Caps, fact{"Last look", fmt.Sprintf("took %v, at %s", store.Round(seen.Took), clockTime(seen.At))})
	}
	now := time.Now()
	v := p.viewOf(r, "health", "Health", seen, may(r, seen.Locks), now)
	v.Data = d
	return http.StatusOK, v
}
