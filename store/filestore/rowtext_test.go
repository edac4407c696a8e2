package filestore

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// rowOf returns the row of a mutex with a holder and waiters.
func rowOf(waiters int) (r row) {
	const meta = `{"host":"a machine","pid":12345,"since":"2026-11-25T22:35:32.123456Z"}`
	for i := range waiters + 1 {
		owner := store.NewOwner()
		ask := rule.Ask{Spec: rule.Mutex, Owner: owner, Meta: meta, TTL: time.Minute, Fair: true, Wait: time.Minute, Floor: 1e15}
		r.Record, _ = rule.Admit(r.Record, ask, 1e12)
		if i > 0 {
			r.told(owner, waiter{Socket: strings.Repeat("s", socketName), Wait: "w"})
		}
	}
	return r
}

// Rows of the usual form are written byte by byte as encoding/json does, and read as such. Those of
// another form are left to it.
func TestPlainText(t *testing.T) {
	with := func(change func(*row)) row {
		r := rowOf(2)
		change(&r)
		return r
	}
	for what, c := range map[string]struct {
		row   row
		usual bool
	}{
		"idle":                 {row{}, true},
		"a holder":             {rowOf(0), true},
		"waiters":              {rowOf(15), true},
		"no descriptions":      {with(func(r *row) { r.Holds[0].Meta, r.Queue[1].Meta = "", "" }), true},
		"waiters that poll":    {with(func(r *row) { r.Waiters = nil }), true},
		"readers":              {with(func(r *row) { r.Spec, r.Holds[0].Slot = rule.ReadWrite, 7 }), true},
		"many escapes":         {with(func(r *row) { r.Holds[0].Meta = `\"\\""\` }), true},
		"an angle bracket":     {with(func(r *row) { r.Holds[0].Meta = `a<b` }), false},
		"no ASCII":             {with(func(r *row) { r.Queue[0].Meta = `ü` }), false},
		"no text":              {with(func(r *row) { r.Queue[0].Meta = "\xff\n" }), false},
		"slots":                {with(func(r *row) { r.Holds[0].Slots = "1" }), false},
		"a broken lease":       {with(func(r *row) { r.Holds[0].Broken = true }), false},
		"an attempt":           {with(func(r *row) { r.Holds[0].Made = "x" }), false},
		"an attempt waits":     {with(func(r *row) { r.Queue[0].Attempt = "x" }), false},
		"a waiter that barges": {with(func(r *row) { r.Queue[0].Barge = true }), false},
		"a ticket":             {with(func(r *row) { r.Queue[0].Ticket = 1 }), false},
		"a tombstone":          {with(func(r *row) { r.Tombstones = []rule.Tombstone{{Owner: "x", Expiry: 1}} }), false},
		"a break":              {with(func(r *row) { r.Broken = &rule.Broken{Owner: "x"} }), false},
		"other permits":        {with(func(r *row) { r.Was = 1 }), false},
		"an entry of nobody":   {with(func(r *row) { r.told("nobody", waiter{Socket: "s", Wait: "w"}) }), false},
	} {
		text, ok := c.row.plainText()
		if ok != c.usual {
			t.Errorf("%s: of the usual form: %v, want %v", what, ok, c.usual)
		}
		want, err := json.Marshal(c.row)
		if err != nil {
			t.Fatal(err)
		}
		if ok && !sameJSON(t, text, string(want)) {
			t.Errorf("%s: wrote %s, want %s", what, text, want)
		}
		if !ok {
			text = string(want)
		}
		if r, read := parsePlain([]byte(text)); read && !reflect.DeepEqual(r, c.row) || c.usual && !read {
			t.Errorf("%s: read %+v (%v) from %s, want %+v", what, r, read, text, c.row)
		}
	}
}

// sameJSON reports whether the texts differ in nothing but the order of the waiters, which
// encoding/json sorts.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	parts := func(text string) (queue string, all map[string]waiter) {
		queue, _, _ = strings.Cut(text, `"waiters"`)
		var r row
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return queue, r.Waiters
	}
	queueA, allA := parts(a)
	queueB, allB := parts(b)
	return len(a) == len(b) && queueA == queueB && reflect.DeepEqual(allA, allB)
}

// FuzzPlainText: whatever parsePlain reads, encoding/json reads as the same.
func FuzzPlainText(f *testing.F) {
	for _, n := range []int{0, 1, 3} {
		text, _ := rowOf(n).plainText()
		f.Add(text)
	}
	for _, text := range []string{
		`{"spec":{"limit":1},"token":7}`, `{"spec":{"limit":01},"token":7}`, `{"spec":{"limit":1},"token":1234567890123456789}`,
		`{"spec":{"limit":1},"token":7} `, `{"spec":{"limit":-1},"token":-0}`, `{"spec":{"limit":},"token":7}`,
		`{"spec":{"limit":1},"holds":[{"owner":"a\"\\","weight":1,"count":1,"token":7,"expiry":9}],"token":7}`,
		`{"spec":{"limit":1},"holds":[],"token":7}`, `{"spec":{"limit":1},"token":7,"waiters":{}}`,
		`{"spec":{"limit":1},"token":7,"waiters":{"a":{"socket":"s","wait":"w"},"a":{"socket":"s","wait":"v"}}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := parsePlain([]byte(text))
		if !ok {
			return
		}
		var want row
		if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("read %+v from %q, want %+v, %v", r, text, want, err)
		}
		again, written := r.plainText()
		if r, ok := parsePlain([]byte(again)); written && (!ok || !reflect.DeepEqual(r, want)) {
			t.Errorf("wrote %q for %q, which reads %+v", again, text, r)
		}
	})
}

func BenchmarkRow(b *testing.B) {
	for _, waiters := range []int{0, 1, 15} {
		r := rowOf(waiters)
		text, err := r.encode()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("write/%d", waiters), func(b *testing.B) {
			for b.Loop() {
				if _, err := r.encode(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("read/%d", waiters), func(b *testing.B) {
			for b.Loop() {
				if _, err := decode("a", []byte(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
