package lockview

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/internal/excerpt"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

// kindText describes a lock that several hold, or can hold, and how much of it is held.
func kindText(k store.Kind, held []store.Holding) string {
	if k.Shared {
		return k.String()
	}
	used := int64(0)
	for _, h := range held {
		used += h.Weight
	}
	return fmt.Sprintf("%v, permits in use: %d of %d", k, used, k.Normal().Limit)
}

// partOf describes what h, one of the holders of a lock of kind k, has of it.
func partOf(k store.Kind, held []store.Holding, h store.Holding) string {
	switch {
	case statejson.IsOne(k, held):
		return "mutex"
	case k.Shared:
		return statejson.ModeOf(k, h)
	case k.IsMutex():
		return fmt.Sprintf("slot %d, %d of 1 permit", h.Slot, h.Weight)
	case h.Weight > 1:
		return fmt.Sprintf("slot %d, %d of %d permits", h.Slot, h.Weight, k.Limit)
	}
	return fmt.Sprintf("slot %d, 1 of %d permits", h.Slot, k.Limit)
}

// partOfUndecided describes what h, one of State.Undecided, has of its lock.
func partOfUndecided(h store.Holding) string {
	return partOf(h.Kind, []store.Holding{h}, h)
}

// waitersText says how many wait. A store tells of the first ones only.
func waitersText(n int) string {
	if n >= store.MaxQueue {
		return fmt.Sprintf("%d+", n)
	}
	return fmt.Sprint(n)
}

// holderText names a holder. That of a lease that nobody renews need not be running, and its process
// is not to be looked for.
func holderText(name string, h store.Holding, now time.Time) string {
	if !h.Holder.Unrenewed {
		return h.Holder.String()
	}
	if since := heldSince(h, now); isTick(name) && !since.IsZero() && h.ExpiresIn >= 0 {
		return fmt.Sprintf("ran at %s on %s, remembered until %s", clockTime(since, now), hostText(h.Holder), clockTime(now.Add(h.ExpiresIn), now))
	}
	text := hostText(h.Holder)
	if h.Holder.Purpose != "" {
		text += " (" + excerpt.AtMost(h.Holder.Purpose, mostPurpose) + ")"
	}
	return text + ", no process renews it"
}

const mostPurpose = 80 // bytes, as store.Holder shows it

// hostText names the host of a holder, or else its owner.
func hostText(h store.Holder) string {
	if h.Host == "" {
		return voice.Shown(h.Owner)
	}
	return excerpt.AtMost(h.Host, mostPurpose)
}

// isTick reports whether a lock is the record of a tick, as leasehold.Client.Once names it, such as
// backup@1h0m0s/3.
func isTick(name string) bool {
	_, tick, ok := cutLast(name, "@")
	every, number, numbered := cutLast(tick, "/")
	every, _, _ = strings.Cut(every, "+")
	_, err := time.ParseDuration(every)
	_, notNumber := strconv.Atoi(number)
	return ok && numbered && err == nil && notNumber == nil
}

// cutLast is strings.Cut around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// clockTime returns a local time, with the day unless it is today.
func clockTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// heldSince returns since when the lock is held, or the zero time if that is unknown.
// If the store cannot tell, it is when the holder asked for the lock, by its own clock.
func heldSince(s store.Holding, now time.Time) time.Time {
	if s.HeldFor > 0 {
		return now.Add(-s.HeldFor)
	}
	return s.Holder.Since
}

// heldFor compares two clocks if the store cannot tell: the holder's and ours, which
// may differ.
func heldFor(s store.Holding, now time.Time) string {
	since := heldSince(s, now)
	if since.IsZero() {
		return "-"
	}
	return ago(since, now)
}

// ago returns the time from since to now, to the second.
func ago(since, now time.Time) string {
	return voice.Brief(max(0, now.Sub(since)).Truncate(time.Second))
}

func expiresIn(d time.Duration) string {
	if d < 0 {
		return "never"
	}
	return voice.Brief(d)
}

func tokenOf(s store.Holding) string {
	if s.Token == 0 {
		return "-"
	}
	return s.Token.String()
}
