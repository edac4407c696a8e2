package recordstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// wire is the record as it is written. An Expiry in it is a TTL, and a Granted is how long ago
// the lease began.
type wire struct {
	name   string
	number uint64 // one more with every write, so that versions have an order
	// writes are random identifiers of this write and of those before it, the newest last. No two
	// versions are the same bytes, not even if a driver makes the version of them.
	writes []uint64
	rec    rule.Record
	beats  []beat // of the entries of rec, in order
}

// beat is what a client must know to count the TTL of an entry.
type beat struct {
	id  uint64
	age time.Duration // for how long the writer had known of it
	by  string        // the session of the client that gave it; see Peers
}

// format is the first byte of a record.
const format = 1

// entry says which part of a record expires.
type entry struct {
	kind  byte   // 0: a lease or a place, which is the same entry once it has become a lease
	owner string // of any of these and of a tombstone
}

// Other kinds of entries.
const (
	tombstoneEntry = 1 + iota
	brokenEntry
)

// entries calls f with each part of r that expires, and its expiry.
func entries(r *rule.Record, f func(key entry, expiry *clock.Instant)) {
	for i := range r.Holds {
		f(entry{owner: r.Holds[i].Owner}, &r.Holds[i].Expiry)
	}
	for i := range r.Queue {
		f(entry{owner: r.Queue[i].Owner}, &r.Queue[i].Expiry)
	}
	for i := range r.Tombstones {
		f(entry{tombstoneEntry, r.Tombstones[i].Owner}, &r.Tombstones[i].Expiry)
	}
	if r.Broken != nil {
		f(entry{kind: brokenEntry}, &r.Broken.Expiry)
	}
}

// Flags of a record and of a lease.
const (
	isShared = 1 << iota
	isBroken
)

func flag(set bool, bit uint64) uint64 {
	if set {
		return bit
	}
	return 0
}

// encode returns w as bytes.
func (w *wire) encode() []byte {
	r := &w.rec
	b := make([]byte, 0, 64+len(w.name)+len(w.writes)*8+(len(r.Holds)+len(r.Queue))*96)
	num := func(n uint64) { b = binary.AppendUvarint(b, n) }
	str := func(s string) {
		num(uint64(len(s)))
		b = append(b, s...)
	}
	b = append(b, format)
	str(w.name)
	num(w.number)
	num(uint64(len(w.writes)))
	for _, id := range w.writes {
		b = binary.LittleEndian.AppendUint64(b, id)
	}
	num(flag(r.Spec.Shared, isShared))
	num(uint64(r.Spec.Limit))
	num(uint64(r.Was))
	num(uint64(r.Token))
	num(uint64(len(r.Holds)))
	for _, h := range r.Holds {
		num(flag(h.Broken, isBroken))
		str(h.Owner)
		str(h.Meta)
		str(h.Made)
		num(uint64(h.Weight))
		num(uint64(h.Count))
		num(uint64(h.Slot))
		num(uint64(h.Token))
		num(uint64(h.Granted))
	}
	num(uint64(len(r.Queue)))
	for _, p := range r.Queue {
		str(p.Owner)
		str(p.Meta)
		str(p.Attempt)
		num(uint64(p.Weight))
	}
	num(uint64(len(r.Tombstones)))
	for _, t := range r.Tombstones {
		str(t.Owner)
	}
	num(flag(r.Broken != nil, isBroken))
	if r.Broken != nil {
		str(r.Broken.Owner)
		num(uint64(r.Broken.Token))
		str(r.Broken.Note)
	}
	i := 0
	entries(r, func(_ entry, expiry *clock.Instant) {
		b = binary.LittleEndian.AppendUint64(b, w.beats[i].id)
		num(uint64(w.beats[i].age))
		str(w.beats[i].by)
		num(uint64(*expiry))
		i++
	})
	return b
}

// maxLenOf returns how many bytes an owner can take in a record, with these texts, as a holder with a beat of
// any age.
func maxLenOf(texts ...string) int {
	n := 128
	for _, s := range texts {
		n += len(s)
	}
	return n
}

// maxLen returns how many bytes the record can have without its name, whatever becomes of the beats.
func maxLen(r rule.Record) int {
	n := 64 + maxWrites*8
	for _, h := range r.Holds {
		n += maxLenOf(h.Owner, h.Meta, h.Made)
	}
	for _, p := range r.Queue {
		n += maxLenOf(p.Owner, p.Meta, p.Attempt)
	}
	for _, b := range r.Tombstones {
		n += maxLenOf(b.Owner)
	}
	if r.Broken != nil {
		n += maxLenOf(r.Broken.Owner, r.Broken.Note)
	}
	return n
}

// isIn reports whether owner has a lease or a place.
func isIn(r rule.Record, owner string) bool {
	return slices.ContainsFunc(r.Holds, func(h rule.Hold) bool { return h.Owner == owner }) ||
		slices.ContainsFunc(r.Queue, func(p rule.Place) bool { return p.Owner == owner })
}

// errRecord is what decode says of bytes that encode did not write.
var errRecord = errors.New("it is not a record of this version")

// reader takes values off the front of the bytes. After the first that is not there it returns
// zeros.
type reader struct {
	left []byte
	text string // as left, so that all strings of a record are one piece of memory
	bad  bool
}

func (r *reader) fail() {
	r.left, r.text, r.bad = nil, "", true
}

// skip takes n bytes off the front.
func (r *reader) skip(n int) {
	r.left, r.text = r.left[n:], r.text[n:]
}

func (r *reader) num() uint64 {
	n, size := binary.Uvarint(r.left)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.skip(size)
	return n
}

// int is num for values that are not negative.
func (r *reader) int() int64 {
	n := r.num()
	if n > 1<<63-1 {
		r.fail()
		return 0
	}
	return int64(n)
}

func (r *reader) str() string {
	n := r.num()
	if n > uint64(len(r.left)) {
		r.fail()
		return ""
	}
	s := r.text[:n]
	r.skip(int(n))
	return s
}

func (r *reader) id() uint64 {
	if len(r.left) < 8 {
		r.fail()
		return 0
	}
	id := binary.LittleEndian.Uint64(r.left)
	r.skip(8)
	return id
}

// len returns a number of values that follow, each of which has least bytes at least.
func (r *reader) len(least int) int {
	n := r.num()
	if n > uint64(len(r.left)/least) {
		r.fail()
		return 0
	}
	return int(n)
}

// decode reads what encode has written. It accepts any bytes.
func decode(b []byte) (w *wire, err error) {
	if len(b) == 0 || b[0] != format {
		return nil, errRecord
	}
	in := &reader{left: b[1:], text: string(b[1:])}
	w = &wire{name: in.str(), number: in.num()}
	r := &w.rec
	for range in.len(8) {
		w.writes = append(w.writes, in.id())
	}
	r.Spec.Shared = in.num()&isShared != 0
	r.Spec.Limit = in.int()
	r.Was = in.int()
	r.Token = fence.Token(in.num())
	for range in.len(9) {
		r.Holds = append(r.Holds, rule.Hold{
			Broken: in.num()&isBroken != 0, Owner: in.str(), Meta: in.str(), Made: in.str(), Weight: in.int(), Count: in.int(),
			Slot: in.int(), Token: fence.Token(in.num()), Granted: clock.Instant(in.int()),
		})
	}
	for range in.len(4) {
		r.Queue = append(r.Queue, rule.Place{Owner: in.str(), Meta: in.str(), Attempt: in.str(), Weight: in.int()})
	}
	for range in.len(1) {
		r.Tombstones = append(r.Tombstones, rule.Tombstone{Owner: in.str()})
	}
	if in.num()&isBroken != 0 {
		r.Broken = &rule.Broken{Owner: in.str(), Token: fence.Token(in.num()), Note: in.str()}
	}
	entries(r, func(_ entry, expiry *clock.Instant) {
		w.beats = append(w.beats, beat{id: in.id(), age: time.Duration(in.int()), by: in.str()})
		*expiry = clock.Instant(in.int())
	})
	if in.bad || len(in.left) > 0 {
		return nil, errRecord
	}
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("it is invalid: %w", err)
	}
	return w, nil
}
