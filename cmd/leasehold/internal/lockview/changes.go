package lockview

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

// Change is a change of the holders of a lock.
type Change struct {
	Event string // as in the help of watch
	Kind  store.Kind
	Of    store.Holding
	Name  string // of the lock, if several are watched
}

// Watched is what watch has told of a lock.
type Watched struct {
	held      []Change        // those told of as holders
	undecided []store.Holding // those that may have held it at first
	free      bool
}

// Changes returns what has changed since the last look. A lease that is undecided, because
// nodes do not answer, is no change, except at the first look.
func (w *Watched) Changes(s store.State, first bool) (changes []Change) {
	held := s.Holdings()
	var still []Change
	for _, c := range w.held {
		switch {
		case hasLease(held, c.Of):
		case hasLease(s.Undecided, c.Of):
			still = append(still, c)
		default:
			changes = append(changes, Change{Event: "over", Kind: c.Kind, Of: c.Of})
		}
	}
	told := w.held
	w.held = still
	for _, h := range held {
		c := Change{Event: "acquired", Kind: s.Kind, Of: h}
		if first || hasLease(w.undecided, h) {
			c.Event = "held"
		}
		if !slices.ContainsFunc(told, func(o Change) bool { return hasLease([]store.Holding{o.Of}, h) }) {
			changes = append(changes, c)
		}
		w.held = append(w.held, c)
	}
	if first {
		w.undecided = s.Undecided
		for _, h := range s.Undecided {
			changes = append(changes, Change{Event: "undecided", Kind: h.Kind, Of: h})
		}
	}
	w.undecided = slices.DeleteFunc(slices.Clone(w.undecided), func(h store.Holding) bool { return !hasLease(s.Undecided, h) })
	switch {
	case s.Free() && !w.free:
		changes, w.free = append(changes, Change{Event: "free"}), true
	case len(changes) > 0:
		w.free = false
	}
	return changes
}

// hasLease reports whether the lease h is among those of some holders. A holder may
// draw further tokens, so its owner alone tells.
func hasLease(in []store.Holding, h store.Holding) bool {
	for _, o := range in {
		if o.Holder.Owner == h.Holder.Owner {
			return true
		}
	}
	return false
}

// changeJSON is a change, as the help of watch describes it.
type changeJSON struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	*statejson.LockName
	*changedJSON
}

type changedJSON struct {
	statejson.Holder
	Token fence.Token `json:"token,omitempty"`
	Slot  *int64      `json:"slot,omitempty"`
}

// Write writes a change that was seen at now.
func (c Change) Write(w io.Writer, now time.Time, asJSON bool) error {
	if asJSON {
		j := changeJSON{Time: now.UTC(), Event: c.Event}
		if c.Name != "" {
			name := statejson.NameOf(c.Name)
			j.LockName = &name
		}
		if c.Event != "free" {
			j.changedJSON = &changedJSON{Holder: statejson.HolderOf(c.Of.Holder), Token: c.Of.Token}
			if !c.Kind.IsMutex() {
				j.Slot = &c.Of.Slot
			}
		}
		return WriteJSONLine(w, j)
	}
	line := now.Local().Format(time.RFC3339) + "  " + c.Event
	if c.Name != "" {
		line = fmt.Sprintf("%-35s %s", line, voice.Shown(c.Name))
	}
	if c.Event != "free" {
		if c.Name != "" {
			line += ": "
		} else {
			line = fmt.Sprintf("%-35s ", line)
		}
		line += fmt.Sprintf("%s, token %s", c.Of.Holder, tokenOf(c.Of))
		if !c.Kind.IsMutex() {
			line += ", " + partOf(c.Kind, nil, c.Of)
		}
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
