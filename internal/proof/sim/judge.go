package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// judge watches a run for broken promises. It checks after every event, when nothing runs,
// and disturbs nothing: it asks a lease whether it is valid only if its holder should have
// been notified already.
type judge struct {
	w      *world
	claims []*claim // not known to be over
	locks  []lockRecord
	kept   []*claim  // that their holders have not begun to release
	goneOn []*client // after a pause, not looked at since
	given  []note    // releases heard of just now
	wrongs []Violation
	tally  Tally
}

// claim is one lease, as its holder sees it.
type claim struct {
	k            *worker
	lock         int
	owner        int
	weight       int64
	lease        *leasehold.Lease
	ttl, notice  time.Duration
	minHold      time.Duration
	maxHold      time.Duration
	at           time.Duration
	last         bool // of the rounds after all faults
	giving, over bool // the holder has begun to release; it has ended
}

// lockRecord is the judge's record of one lock.
type lockRecord struct {
	tokens  map[int]uint64 // of the last grant of each slot
	readers bool           // the last grant was that of a reader
	writer  uint64         // token of the last writer
	written map[int]uint64 // largest token the resource has seen, of each slot

	grants     int           // of it
	leastUntil time.Duration // a least hold keeps it until then
	// For the judgement of idle time: the waiter that could be granted the lock, since when,
	// and the number of grants until then.
	waited     string
	freeSince  time.Duration
	grantsSeen int
}

// Violation is a promise that was broken.
type Violation struct {
	At   time.Duration
	Rule string // which promise
	Text string // by what
}

func (v Violation) String() string { return fmt.Sprintf("%v: %s: %s", v.At, v.Rule, v.Text) }

// The promises.
const (
	Exclusion = "two valid leases at once"
	Permits   = "more permits held than there are"
	Slots     = "two holders of one slot"
	ToldLate  = "a holder's context did not end before others could have the lock"
	Token     = "a fencing token did not increase"
	Stale     = "a holder that believed in its lease was refused for its token"
	Orphan    = "something was left behind"
	Waiting   = "a waiter did not get the lock"
	Idle      = "nobody has a lock that somebody waits for"
	Answers   = "a wrong answer"
)

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
	at     time.Duration // by the timers; a paused client's are heard of later
}

func (j *judge) init(w *world) {
	j.w = w
	j.locks = make([]lockRecord, w.script.Locks)
	for i := range j.locks {
		j.locks[i].tokens, j.locks[i].written = map[int]uint64{}, map[int]uint64{}
	}
}

func (j *judge) failed() bool { return len(j.wrongs) > 0 }

func (j *judge) wrong(rule, format string, args ...any) {
	if j.w.gaveUp {
		return // one is enough, and the end of such a run is no clean one
	}
	v := Violation{At: j.w.now(), Rule: rule, Text: fmt.Sprintf(format, args...)}
	j.wrongs = append(j.wrongs, v)
	j.w.hist.say("VIOLATION: %s: %s", rule, v.Text)
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
			j.releases(n.claim, n.err)
		}
	}
	j.given = j.given[:0]
	for _, c := range j.goneOn {
		j.goesOn(c)
	}
	j.goneOn = j.goneOn[:0]
	for _, c := range j.claims {
		switch {
		case !c.k.c.running() || c.over:
		case c.ended():
			j.ends(c)
		case c.maxHold > 0 && j.w.now()-c.at > c.maxHold && !j.drowsy(c) && j.w.now() >= c.k.c.goneOn+time.Millisecond:
			j.wrong(Answers, "%s is held for %v, longer than the %v it was to be", j.name(c), j.w.now()-c.at, c.maxHold)
		}
	}
	j.claims = slices.DeleteFunc(j.claims, func(c *claim) bool { return c.over })
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

// ended says whether the holder has been notified that the lease is over.
func (c *claim) ended() bool {
	select {
	case <-c.lease.Done():
		return true
	default:
		return false
	}
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
		j.grants(n.claim)
	case refused:
		k.wants = -1
		j.tally.Refusals++
		j.refuses(k, n)
	case wrote:
		j.writes(n.claim)
	case extended:
		j.tally.Extensions++
	case releasing:
		n.claim.giving = true
	case released: // judged after all that is heard now
	case wrong:
		j.wrong(Answers, "%s, lease %s", n.text, j.name(n.claim))
	}
}

func (j *judge) name(c *claim) string {
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
