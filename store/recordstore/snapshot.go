package recordstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/shown"
)

// snapshot is one version of a record, with its expiries on this client's clock. It does not
// change.
type snapshot struct {
	version string
	number  uint64
	absent  bool     // there is no record
	writes  []uint64 // as in wire
	rec     rule.Record
	lives   map[entry]life // of the entries of rec
	strange bool           // an entry was new to this client
	order   uint64         // Item.Order
	other   string         // the owner of the lease of Item.Other, or ""
	// acknowledged means that this client wrote it, and had the answer.
	acknowledged bool
}

// life is what this client knows of the beat of an entry.
type life struct {
	id     uint64
	ttl    time.Duration
	first  clock.Instant // the beat had been written by then
	own    bool          // this client wrote it, after first: its owner can count from there
	by     string        // the session of the client that wrote it
	expiry clock.Instant
}

// ownLife returns the life of an owner's lease or place, if this client wrote its beat.
func (s *snapshot) ownLife(owner string) (life, bool) {
	l := s.lives[entry{owner: owner}]
	return l, l.own
}

// ahead returns how many leases and places are ahead of the first one of this client.
func (s *snapshot) ahead() (n int) {
	for _, h := range s.rec.Holds {
		if s.lives[entry{owner: h.Owner}].own {
			return n
		}
		n++
	}
	for _, p := range s.rec.Queue {
		if s.lives[entry{owner: p.Owner}].own {
			return n
		}
		n++
	}
	return n
}

// floor returns the smallest token that a lease in the next version may have.
func (s *snapshot) floor() fence.Token {
	if !s.absent {
		return 0 // it is larger than the last one in the record
	}
	return fence.Token(s.number*tokensPerWrite + 1)
}

// tokensPerWrite is how many tokens one write can grant on average if the record may be deleted
// later: one that begins after a number of writes then has larger tokens than all that these
// have granted. With MaxFloor, tokens stay below 2^53, which guards in other languages can
// compare as well.
const tokensPerWrite = 1 << 11

// deletable reports whether the version can be deleted once nobody uses the lock.
func (s *snapshot) deletable() bool {
	return s.rec.Idle() && s.rec.Token <= fence.Token(s.number*tokensPerWrite)
}

// holder returns the Change.Holder of the version.
func (s *snapshot) holder() string {
	switch {
	case len(s.rec.Holds) == 0:
		return ""
	case s.rec.Spec != rule.Spec{Limit: 1}:
		return Several
	case s.rec.Holds[0].Broken:
		return ""
	}
	return s.rec.Holds[0].Owner
}

// change returns what the version does to the lock that it replaces a version of.
func (s *snapshot) change(old *snapshot, idle bool) Change {
	c := Change{Idle: idle, Holder: s.holder(), Other: s.other != ""}
	for _, h := range s.rec.Holds {
		l := s.lives[entry{owner: h.Owner}]
		before, known := old.life(entry{owner: h.Owner})
		c.TTL, c.Renewed = max(c.TTL, l.ttl), c.Renewed || !known || before.id != l.id
	}
	return c
}

// give replaces the leases of the record by that of another kind of client, if it has one. It takes
// all of the lock.
func (w *wire) give(o *Other) {
	w.beats = slices.Clone(w.beats[len(w.rec.Holds):])
	w.rec.Holds, w.rec.Was = nil, 0
	if o.Owner == "" || o.TTL <= 0 {
		return
	}
	if len(w.rec.Queue) == 0 {
		w.rec.Spec = rule.Mutex
	}
	w.rec.Token = max(w.rec.Token, 1)
	w.rec.Holds = []rule.Hold{{Owner: o.Owner, Meta: shown.Foreign, Weight: w.rec.Spec.Limit, Count: 1, Token: w.rec.Token, Expiry: clock.Instant(o.TTL)}}
	w.beats = slices.Insert(w.beats, 0, beat{id: o.Beat})
}

// read returns the snapshot of an item. before is an earlier or later version that this client
// knows, or nil, and at a reading of the clock from after the item was received.
func read(name string, it Item, before *snapshot, at clock.Instant) (*snapshot, error) {
	s := &snapshot{version: it.Version, absent: it.Value == nil, order: it.Order}
	w := &wire{name: name, number: it.Floor}
	if it.Value != nil {
		var err error
		if w, err = decode(it.Value); err != nil {
			return nil, fmt.Errorf("the record of lock %q cannot be read: %w", name, err)
		}
		if w.name != name {
			return nil, fmt.Errorf("the record of lock %q is that of %q", name, w.name)
		}
	} else if it.Floor > MaxFloor {
		return nil, fmt.Errorf("the record of lock %q begins with number %d: the driver's Floor can be %d at most", name, it.Floor, uint64(MaxFloor))
	}
	if it.Other != nil {
		if w.give(it.Other); len(w.rec.Holds) > 0 {
			s.other = it.Other.Owner
		}
	}
	s.number, s.rec, s.writes = w.number, w.rec, w.writes
	s.lives = make(map[entry]life, len(w.beats))
	var since time.Duration
	if !it.Written.IsZero() && !it.Now.IsZero() {
		since = max(0, it.Now.Sub(it.Written))
	}
	i := 0
	entries(&s.rec, func(key entry, expiry *clock.Instant) {
		b := w.beats[i]
		i++
		l := life{id: b.id, by: b.by, ttl: time.Duration(*expiry), first: back(at, b.age+since)}
		known, met := before.life(key)
		if met = met && known.id == b.id; met {
			l.first, l.own = min(l.first, known.first), known.own
		}
		s.strange = s.strange || !met
		l.expiry = l.first.Add(l.ttl)
		*expiry = l.expiry
		s.lives[key] = l
	})
	for i := range s.rec.Holds {
		s.rec.Holds[i].Granted = back(at, time.Duration(s.rec.Holds[i].Granted)+since)
	}
	return s, nil
}

// back returns the instant d before at, or the first possible one.
func back(at clock.Instant, d time.Duration) clock.Instant {
	return max(1, at-clock.Instant(max(0, d)))
}

// sameTurns reports whether s and o, which may be nil, have the same holders and the same queue:
// if so, nothing but beats has changed for waiters.
func (s *snapshot) sameTurns(o *snapshot) bool {
	return o != nil && slices.EqualFunc(s.rec.Holds, o.rec.Holds, func(a, b rule.Hold) bool { return a.Owner == b.Owner && a.Broken == b.Broken }) &&
		slices.EqualFunc(s.rec.Queue, o.rec.Queue, func(a, b rule.Place) bool { return a.Owner == b.Owner })
}

func (s *snapshot) life(key entry) (life, bool) {
	if s == nil {
		return life{}, false
	}
	l, ok := s.lives[key]
	return l, ok
}

// last returns the identifier of the write that made the version, or 0 if there is no record.
func (s *snapshot) last() uint64 {
	if len(s.writes) == 0 {
		return 0
	}
	return s.writes[len(s.writes)-1]
}

// maxWrites is how many writes a record remembers.
const maxWrites = 16

// write is a version that is to replace another one.
type write struct {
	old, next *snapshot // next has no version yet
	body      []byte
	sent      bool // and there was no answer
}

// replace returns the write of rec in place of s. Entries that have changed, and those
// whose owners are in touched, get a new beat.
func (s *snapshot) replace(name string, rec rule.Record, touched map[entry]bool, session string, now clock.Instant) *write {
	id := rand.Uint64()
	next := &snapshot{number: s.number + 1, rec: rec, lives: make(map[entry]life, len(rec.Holds)+len(rec.Queue))}
	next.writes = append(slices.Clone(s.writes[max(0, len(s.writes)-maxWrites+1):]), id)
	w := wire{name: name, number: next.number, writes: next.writes, rec: clone(rec)}
	entries(&w.rec, func(key entry, expiry *clock.Instant) {
		l, known := s.lives[key]
		if known && l.expiry == *expiry && !touched[key] {
			w.beats = append(w.beats, beat{l.id, max(0, now.Sub(l.first)), l.by})
		} else {
			by := l.by
			if touched[key] {
				by = session
			}
			l = life{id: rand.Uint64(), by: by, ttl: max(0, expiry.Sub(now)), first: now, own: true, expiry: *expiry}
			w.beats = append(w.beats, beat{id: l.id, by: by})
		}
		*expiry = clock.Instant(l.ttl)
		next.lives[key] = l
	})
	if l, ok := next.lives[entry{owner: s.other}]; ok && l.id == s.lives[entry{owner: s.other}].id {
		next.other = s.other // its lease goes on
	}
	for i, h := range w.rec.Holds {
		w.rec.Holds[i].Granted = clock.Instant(max(0, now.Sub(h.Granted)))
	}
	return &write{old: s, next: next, body: w.encode()}
}

// clone returns a copy of r whose entries can be changed.
func clone(r rule.Record) rule.Record {
	r.Holds, r.Queue, r.Tombstones = slices.Clone(r.Holds), slices.Clone(r.Queue), slices.Clone(r.Tombstones)
	if r.Broken != nil {
		b := *r.Broken
		r.Broken = &b
	}
	return r
}

// fate is what has become of a write without an answer.
type fate int

const (
	pending fate = iota // not applied yet; only another write in place of the same version rules it out
	applied
	dead
	forgotten // too many writes have followed to tell
)

// fateOf says what has become of w, in a record of which s was read after w was sent.
func (s *snapshot) fateOf(w *write) fate {
	switch {
	case s.version == w.old.version:
		return pending
	case slices.Contains(s.writes, w.next.last()):
		return applied
	case !s.absent && s.number > w.old.number && s.number-w.old.number <= uint64(len(s.writes)):
		return dead
	case !s.absent && s.number == w.old.number && s.order > w.old.order: // another kind of client has replaced it
		return dead
	}
	return forgotten
}
