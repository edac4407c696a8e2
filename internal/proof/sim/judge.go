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
	w         *world
	holders   *holders
	idleness  idleness
	leftovers leftovers
	goneOn    []*client // after a pause, not looked at since
	given     []note    // releases reported just now
}

func newJudge(w *world) *judge {
	f := &w.findings
	h := &holders{findings: f, w: w, locks: make([]lockRecord, w.script.Locks)}
	for i := range h.locks {
		h.locks[i].tokens, h.locks[i].written = map[int]uint64{}, map[int]uint64{}
	}
	return &judge{findings: f, w: w, holders: h, idleness: idleness{f, w, h, make([]wait, w.script.Locks)}, leftovers: leftovers{f, w}}
}

// look takes in the notes of workers, and finds leases that have ended.
// Actions of a paused process are seen when it goes on.
func (j *judge) look() {
	j.w.trace.renewals(j.holders.claims)
	for c := range j.w.everybody {
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
	j.record(k, n)
	if k.c.dead {
		return
	}
	switch n.kind {
	case begins:
		k.wants, k.wantsWeight = n.lock, n.weight
	case granted:
		k.wants = -1
		j.holders.grants(n.claim)
		j.w.trace.granted(n.claim)
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
	case named:
		j.holders.names(n)
	case wrong:
		j.wrong(Answers, "%s, lease %s", n.text, j.holders.name(n.claim))
	}
}

var noteNames = [...]string{"asks for a lock", "holds the lock", "gave up", "writes to the resource", "extended", "begins to release", "released", "WRONG", "ends a lease"}

// record records a note.
func (j *judge) record(k *worker, n note) {
	h := j.hist
	cl := class(n.err)
	h.mix(factNote, uint64(k.c.index), uint64(k.index), uint64(n.kind))
	h.mixText(cl)
	if n.claim != nil {
		h.mix(uint64(h.number(n.claim.lease.Owner())), uint64(n.claim.lease.Token()))
	}
	if !h.keep {
		return
	}
	s := noteNames[n.kind]
	if n.kind == named {
		n.text = fmt.Sprintf("of o%d, frees it: %v", h.number(n.text), n.frees)
	}
	if n.claim != nil {
		s += fmt.Sprintf(": o%d, lock %d, token %d", h.number(n.claim.lease.Owner()), n.claim.lock+1, n.claim.lease.Token())
	}
	if n.err != nil {
		s += ": " + cl
	}
	h.write(fmt.Sprintf("c%d.w%d", k.c.index+1, k.index), "%s %s", s, n.text)
}

// The judge is the watcher of its world.
func (j *judge) idle()             { j.idleness.idle() }
func (j *judge) slept()            { j.idleness.slept() }
func (j *judge) starved()          { j.leftovers.starved() }
func (j *judge) paused(c *client)  { j.holders.pauses(c) }
func (j *judge) resumed(c *client) { j.goneOn = append(j.goneOn, c) }
func (j *judge) died(c *client)    { j.holders.died(c) }
func (j *judge) applied(n *node, o op, said []byte, replayed bool) {
	j.leftovers.applied(n, o, said, replayed)
	if o.ends() || o.operator && o.name == "break" {
		for _, owner := range o.owners {
			j.holders.cuts(owner)
		}
	}
	if o.lock < 0 || j.w.switches.Trusting || j.w.script.kind(o.lock).IsMutex() {
		return
	}
	if fault := recordFault(n, o.lock); fault != "" {
		j.wrong(Record, "after %s: lock %d on n%d: %s", o.name, o.lock+1, n.index+1, fault)
	}
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
