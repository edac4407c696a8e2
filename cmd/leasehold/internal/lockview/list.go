package lockview

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/screen"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

// List is what a store keeps.
type List struct {
	States  []store.State
	Waiting map[string]int // how many wait for each lock, if that was counted
}

// Listed is a lock in a list, as "leasehold help json" describes it.
type Listed struct {
	statejson.State
	Waiters *int `json:"waiters,omitempty"`
}

// JSON returns the list as "leasehold help json" describes it.
func (l List) JSON() []Listed {
	list := make([]Listed, len(l.States))
	for i, s := range l.States {
		list[i].State = JSON(s)
		if n, ok := l.Waiting[s.Name]; ok {
			list[i].Waiters = &n
		}
	}
	return list
}

// Note says what is not certain about the list, or is empty.
func (l List) Note() string {
	if i := slices.IndexFunc(l.States, func(s store.State) bool { return len(s.Undecided) > 0 }); i >= 0 {
		return "some locks are marked, since they may be held: " + store.Silent(l.States[i].Nodes)
	}
	return ""
}

// Table returns the list as a table.
func (l List) Table(now time.Time) string {
	rows := [][]string{{"NAME", "KIND", "HOLDER", "HELD FOR", "EXPIRES IN", "WAITERS", "TOKEN"}}
	for _, s := range l.States {
		held := s.Holdings()
		waiters := "-"
		if n, ok := l.Waiting[s.Name]; ok {
			waiters = waitersText(n)
		}
		line := func(part, holder string, h store.Holding) {
			rows = append(rows, []string{voice.Shown(s.Name), part, holder, heldFor(h, now), expiresIn(h.ExpiresIn), waiters, tokenOf(h)})
			waiters = ""
		}
		for _, h := range held {
			line(partOf(s.Kind, held, h), holderText(s.Name, h, now), h)
		}
		for _, h := range s.Undecided {
			line(partOfUndecided(h), holderText(s.Name, h, now)+" (may hold it)", h)
		}
	}
	return screen.Table(rows)
}
