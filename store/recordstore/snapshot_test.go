package recordstore

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

const start = clock.Instant(1 << 60)

// at is d after the start, by any client's clock.
func at(d time.Duration) clock.Instant { return start.Add(d) }

// held is the record of a mutex that owner was granted at now.
func held(t *testing.T, owner string, ttl time.Duration, now clock.Instant) rule.Record {
	t.Helper()
	rec, ans := rule.Admit(rule.Record{}, rule.Ask{Spec: rule.Mutex, Owner: owner, TTL: ttl}, now)
	if ans.Verdict != rule.Granted {
		t.Fatalf("Admit: %v", ans.Verdict)
	}
	return rec
}

// seen is what a client with the version before sees of w at an instant of its clock.
func seen(t *testing.T, w *write, version string, before *snapshot, now clock.Instant, dated time.Duration) *snapshot {
	t.Helper()
	it := Item{Value: w.body, Version: version}
	if dated > 0 {
		it.Written = time.Unix(1, 0)
		it.Now = it.Written.Add(dated)
	}
	s, err := read("x", it, before, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func left(s *snapshot, now clock.Instant) time.Duration { return s.rec.Holds[0].Expiry.Sub(now) }

// A client counts a TTL from when it first saw the beat, less what it has been told of its
// age: by the engine that dates the record, and by the client that wrote it.
func TestAgeOfABeat(t *testing.T) {
	const ttl = 10 * time.Second
	first := (&snapshot{}).replace("x", held(t, "ann", ttl, at(0)), map[entry]bool{{owner: "ann"}: true}, "", at(0))
	watcher := seen(t, first, "1", nil, at(time.Second), 0)
	if got := left(watcher, at(time.Second)); got != ttl {
		t.Errorf("a newcomer without dates sees %v left, want %v", got, ttl)
	}
	if got := left(seen(t, first, "1", nil, at(time.Second), time.Second), at(time.Second)); got != ttl-time.Second {
		t.Errorf("a newcomer with dates sees %v left, want %v", got, ttl-time.Second)
	}
	if got := left(seen(t, first, "1", watcher, at(4*time.Second), 0), at(4*time.Second)); got != ttl-3*time.Second {
		t.Errorf("the watcher sees %v left after 3s, want %v", got, ttl-3*time.Second)
	}
	// The watcher writes something else 5 s after it saw the beat.
	next := watcher.replace("x", watcher.rec, nil, "", at(6*time.Second))
	if got := left(seen(t, next, "2", nil, at(7*time.Second), 0), at(7*time.Second)); got != ttl-5*time.Second {
		t.Errorf("a newcomer sees %v left of a beat that the writer had known for 5s, want %v", got, ttl-5*time.Second)
	}
	if got := left(seen(t, next, "2", nil, at(7*time.Second), time.Second), at(7*time.Second)); got != ttl-6*time.Second {
		t.Errorf("a newcomer with dates sees %v left of a beat of 5s that was written 1s ago, want %v", got, ttl-6*time.Second)
	}
}

// A renewal by a client that believes the lease to last longer than the others do begins a
// new beat, though the end of the lease does not change for that client.
func TestRenewalByANewcomerBeginsANewBeat(t *testing.T) {
	const ttl = 10 * time.Second
	first := (&snapshot{}).replace("x", held(t, "ann", ttl, at(0)), map[entry]bool{{owner: "ann"}: true}, "", at(0))
	watcher := seen(t, first, "1", nil, at(0), 0)
	newcomer := seen(t, first, "1", nil, at(8*time.Second), 0)
	rec, ans := rule.Renew(newcomer.rec, "ann", 5*time.Second, at(9*time.Second))
	if ans.Verdict != rule.Done || rec.Holds[0].Expiry != newcomer.rec.Holds[0].Expiry {
		t.Fatalf("Renew: %v, the expiry changed by %v, want it as it was", ans.Verdict, rec.Holds[0].Expiry.Sub(newcomer.rec.Holds[0].Expiry))
	}
	renewed := newcomer.replace("x", rec, map[entry]bool{{owner: "ann"}: true}, "", at(9*time.Second))
	if got := left(seen(t, renewed, "2", watcher, at(9*time.Second), 0), at(9*time.Second)); got < 5*time.Second {
		t.Errorf("the watcher sees %v left after a renewal for 5s", got)
	}
}

// A lease keeps the beat of the place that it came from: its owner counts from its last
// refresh of that, not from the hand-off.
func TestHandOffKeepsTheBeat(t *testing.T) {
	const ttl = 10 * time.Second
	rec := held(t, "ann", ttl, at(0))
	first := (&snapshot{}).replace("x", rec, map[entry]bool{{owner: "ann"}: true}, "", at(0))
	rec, _ = rule.Admit(rec, rule.Ask{Spec: rule.Mutex, Owner: "bob", TTL: ttl, Wait: ttl, Fair: true}, at(2*time.Second))
	queued := first.next.replace("x", rec, map[entry]bool{{owner: "bob"}: true}, "", at(2*time.Second))
	ann := seen(t, queued, "2", nil, at(2*time.Second), 0)
	rec, _ = rule.Release(ann.rec, rule.End{Owner: "ann"}, at(5*time.Second))
	rec, _ = rule.Advance(rec, 0, at(5*time.Second))
	handed := ann.replace("x", rec, nil, "", at(5*time.Second))
	bob := seen(t, handed, "3", queued.next, at(6*time.Second), 0)
	if l, own := bob.ownLife("bob"); !own || l.first != at(2*time.Second) {
		t.Errorf("bob counts from %v, own %v, want from its own write at 2s", l.first.Sub(start), own)
	}
	if got := left(bob, at(6*time.Second)); got != ttl-4*time.Second {
		t.Errorf("bob sees %v left, want %v", got, ttl-4*time.Second)
	}
}

// The next versions tell what has become of a write without an answer.
func TestFate(t *testing.T) {
	old := seen(t, (&snapshot{}).replace("x", held(t, "ann", time.Minute, at(0)), nil, "", at(0)), "1", nil, at(0), 0)
	mine := old.replace("x", rule.Record{Token: 1}, nil, "", at(0))
	other := old.replace("x", old.rec, nil, "", at(0))
	after := func(w *write, n int) *snapshot {
		s := w.next
		for range n {
			s = s.replace("x", s.rec, nil, "", at(0)).next
		}
		s.version = "later"
		return s
	}
	for name, c := range map[string]struct {
		s    *snapshot
		want fate
	}{
		"the version is still the old one": {old, pending},
		"it is the newest write":           {after(mine, 0), applied},
		"others have followed it":          {after(mine, maxWrites-1), applied},
		"too many have followed it":        {after(mine, maxWrites), forgotten},
		"another one was made instead":     {after(other, 0), dead},
		"others followed that":             {after(other, maxWrites-2), dead},
		"too many followed that":           {after(other, maxWrites+1), forgotten},
		"the record was deleted":           {&snapshot{absent: true, version: "none", number: 99}, forgotten},
		"the record went back":             {&snapshot{version: "restored", number: 1, writes: []uint64{7}}, forgotten},
	} {
		if got := c.s.fateOf(mine); got != c.want {
			t.Errorf("%s: fate %d, want %d", name, got, c.want)
		}
	}
}

// Two versions are never the same bytes, though nothing has changed: an engine may make
// versions of the bytes.
func TestNoTwoVersionsAreAlike(t *testing.T) {
	a := (&snapshot{}).replace("x", rule.Record{}, nil, "", at(0))
	b := (&snapshot{}).replace("x", rule.Record{}, nil, "", at(0))
	if string(a.body) == string(b.body) {
		t.Error("two writes of the same record have the same bytes")
	}
}

// Tokens of a record stay above those of the record before it that was deleted, and below 2^53.
func TestTokensOfARecordThatWasDeleted(t *testing.T) {
	s := &snapshot{absent: true, number: 7}
	rec, ans := rule.Admit(rule.Record{}, rule.Ask{Spec: rule.Mutex, Owner: "ann", TTL: time.Second, Floor: s.floor()}, at(0))
	next := s.replace("x", rule.Record{Token: rec.Token}, nil, "", at(0)).next
	if !next.deletable() {
		t.Errorf("a record with token %d in write %d cannot be deleted", rec.Token, next.number)
	}
	if later := (&snapshot{absent: true, number: next.number}).floor(); later <= ans.Token {
		t.Errorf("the next record begins at token %d, want more than %d", later, ans.Token)
	}
	next.rec.Token = (&snapshot{absent: true, number: next.number}).floor()
	if next.deletable() {
		t.Errorf("a record with token %d can be deleted in write %d", next.rec.Token, next.number)
	}
	if most := (&snapshot{absent: true, number: MaxFloor}).floor(); most >= 1<<53 {
		t.Errorf("the largest floor is token %d, want less than 2^53", most)
	}
}

// A record is read as it was written, and any other bytes are refused.
func FuzzDecode(f *testing.F) {
	full := wire{name: "a/b\x00", number: 1 << 40, writes: []uint64{1, 1<<64 - 1}, rec: rule.Record{
		Spec: rule.Spec{Limit: 5}, Was: 7, Token: 12,
		Holds:      []rule.Hold{{Owner: "ann", Meta: "{}", Weight: 2, Count: 1, Slot: 3, Token: 9, Made: "m", Broken: true, Granted: 4, Expiry: 5}},
		Queue:      []rule.Place{{Owner: "bob", Meta: "é", Weight: 1, Attempt: "n", Expiry: 6}},
		Tombstones: []rule.Tombstone{{Owner: "cid", Expiry: 7}},
		Broken:     &rule.Broken{Owner: "dan", Token: 3, Note: "note", Expiry: 8},
	}, beats: []beat{{1, 2, "s"}, {3, 4, ""}, {5, 6, "t"}, {7, 8, ""}}}
	back, err := decode(full.encode())
	if err != nil || !reflect.DeepEqual(*back, full) {
		f.Fatalf("decoded %+v, %v, want %+v", back, err, full)
	}
	f.Add(full.encode())
	f.Add((&wire{name: "x"}).encode())
	f.Add([]byte{format, 1, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := decode(b)
		if err != nil {
			return
		}
		again, err := decode(w.encode())
		if err != nil || !reflect.DeepEqual(w, again) {
			t.Errorf("decoded %+v, then %+v, %v", w, again, err)
		}
	})
}

// A record is never longer than maxLen says, whatever it has and however old its beats are.
func TestMaxLen(t *testing.T) {
	const long = 1<<63 - 1
	text := strings.Repeat("x", 300)
	w := wire{name: text, number: math.MaxUint64, writes: make([]uint64, maxWrites), rec: rule.Record{
		Spec: rule.Spec{Limit: long}, Was: long, Token: math.MaxUint64,
		Broken: &rule.Broken{Owner: text, Token: math.MaxUint64, Note: text, Expiry: long},
	}}
	for range 100 {
		w.rec.Holds = append(w.rec.Holds, rule.Hold{Owner: text, Meta: text, Made: text, Weight: long, Count: long, Slot: long, Token: math.MaxUint64, Granted: long, Expiry: long})
		w.rec.Queue = append(w.rec.Queue, rule.Place{Owner: text, Meta: text, Attempt: text, Weight: long, Expiry: long})
		w.rec.Tombstones = append(w.rec.Tombstones, rule.Tombstone{Owner: text, Expiry: long})
	}
	for range 301 {
		w.beats = append(w.beats, beat{id: math.MaxUint64, age: long, by: store.NewOwner()})
	}
	if got, most := len(w.encode()), len(w.name)+maxLen(w.rec); got > most {
		t.Errorf("a record has %d bytes, want %d at most", got, most)
	}
}
