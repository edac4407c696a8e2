package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// judge watches a run for broken promises. It checks after every event, when nothing runs,
// and disturbs nothing: it asks a lease whether it is valid only if its holder should have
// been notified already.
type judge struct {
	*findings
	holders   *holders
	idleness  idleness
	leftovers leftovers
	goneOn    []*client // after a pause, not looked at since
	given     []note    // releases reported just now
}

func newJudge(w *world) *judge {
	f := &findings{w: w}
	h := &holders{findings: f, locks: make([]lockRecord, w.script.Locks)}
	for i := range h.locks {
		h.locks[i].tokens, h.locks[i].written = map[int]uint64{}, map[int]uint64{}
	}
	return &judge{findings: f, holders: h, idleness: idleness{f, h, make([]wait, w.script.Locks)}, leftovers: leftovers{f}}
}

type noteKind uint8

const (
	begins noteKind = iota
	granted
	refused
	wrote
	extended
	releasing
	released
	wrong
)

// note is a report of a worker.
type note struct {
	kind  noteKind
	claim *claim
	lock  int // of begins
	// weight is how much of the lock, of begins.
	weight int64
	err    error
	text   string
	by     *worker
	at     time.Duration // by the timers; a paused client's are read later
}

// look takes in the notes of workers, and finds leases that have ended.
// Actions of a paused process are seen when it goes on.
func (j *judge) look() {
	for _, c := range j.w.clients {
		if c.paused() {
			continue
		}
		for _, n := range j.collect(c) {
			if n.kind == released { // the grant that it led to comes first
				j.given = append(j.given, n)
			}
			j.hear(n.by, n)
		}
	}
	for _, n := range j.given {
		if !n.claim.k.c.dead {
			j.holders.releases(n.claim, n.err)
		}
	}
	j.given = j.given[:0]
	for _, c := range j.goneOn {
		j.holders.goesOn(c)
	}
	j.goneOn = j.goneOn[:0]
	for _, c := range j.holders.claims {
		switch {
		case !c.k.c.running() || c.over:
		case c.ended():
			j.holders.ends(c)
		case c.maxHold > 0 && j.w.now()-c.at > c.maxHold && !j.holders.drowsy(c) && j.w.now() >= c.k.c.goneOn+time.Millisecond:
			j.wrong(Answers, "%s is held for %v, longer than the %v it was to be", j.holders.name(c), j.w.now()-c.at, c.maxHold)
		}
	}
	j.holders.claims = slices.DeleteFunc(j.holders.claims, func(c *claim) bool { return c.over })
}

// collect takes the notes of a client's workers, in order of time.
func (j *judge) collect(c *client) (notes []note) {
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	for _, k := range c.workers {
		notes = append(notes, k.notes...)
		k.notes = k.notes[:0]
	}
	slices.SortStableFunc(notes, func(a, b note) int { return cmp.Compare(a.at, b.at) })
	return notes
}

func (j *judge) hear(k *worker, n note) {
	j.w.hist.note(k, n)
	if k.c.dead {
		return
	}
	switch n.kind {
	case begins:
		k.wants, k.wantsWeight = n.lock, n.weight
	case granted:
		k.wants = -1
		j.holders.grants(n.claim)
	case refused:
		k.wants = -1
		j.tally.Refusals++
		j.refuses(k, n)
	case wrote:
		j.holders.writes(n.claim)
	case extended:
		j.tally.Extensions++
	case releasing:
		n.claim.giving = true
	case released: // judged after all that is heard now
	case wrong:
		j.wrong(Answers, "%s, lease %s", n.text, j.holders.name(n.claim))
	}
}

func (h *holders) name(c *claim) string {
	return fmt.Sprintf("o%d (c%d.w%d, lock %d, token %d)", c.owner, c.k.c.index+1, c.k.index, c.lock+1, c.lease.Token())
}

// refuses judges an attempt that ended without a lease.
func (j *judge) refuses(k *worker, n note) {
	if n.text == "last" {
		j.wrong(Waiting, "c%d.w%d was refused though nothing was wrong: %s", k.c.index+1, k.index, class(n.err))
	}
}

// placeOf returns the owner and the lock of the place that a key holds.
func placeOf(key string) (lock int, owner string, ok bool) {
	name, owner, ok := strings.Cut(key, "}:place:")
	return lockIndex(strings.TrimPrefix(name, "{")), owner, ok
}
