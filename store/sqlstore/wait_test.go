package sqlstore

import (
	"testing"
	"testing/synctest"
	"time"
)

// A waiter delays its place until a probe shows whether sessions last, but not for long. If the
// probe takes longer, its end also ends a pause between two looks.
func TestWaiterWaitsForTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probing := make(chan struct{})
		w := &waiting{s: &Store{caller: caller{seats: &seats{probing: probing, most: 1}}}}
		took := func(what func()) time.Duration {
			began := time.Now()
			what()
			return time.Since(began)
		}
		if d := took(func() { w.probe(t.Context()) }); d != probedWithin {
			t.Errorf("a place is delayed for %v by a probe that does not end, want %v", d, probedWithin)
		}
		const soon = 10 * time.Millisecond
		time.AfterFunc(soon, func() { close(probing) })
		if d := took(func() { w.rest(t.Context(), time.Hour) }); d != soon {
			t.Errorf("a pause ends after %v, want %v, when the probe ends", d, soon)
		}
		if d := took(func() { w.probe(t.Context()) }); d != 0 {
			t.Errorf("a place is delayed for %v after the probe, want no delay", d)
		}
		w.s.seats.probing = nil
		if d := took(func() { w.rest(t.Context(), time.Hour) }); d != time.Hour {
			t.Errorf("a pause of an hour takes %v", d)
		}
	})
}
