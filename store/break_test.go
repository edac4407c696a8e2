package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// A note about a break is read as it was written. Other bytes are no note.
func TestBreakNote(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	for _, r := range []store.BreakRequest{
		{},
		{By: "me on host", Reason: "it\nhangs \x00 \"so\" <b>", At: at, Now: true},
		{Reason: strings.Repeat("ü", store.MaxNote/2)},
	} {
		want := store.Broken{Owner: "o", Token: 7, By: r.By, Reason: r.Reason, At: r.At, Now: r.Now}
		if got := store.DecodeBroken("o", 7, r.Note()); *got != want {
			t.Errorf("%+v, want %+v", *got, want)
		}
	}
	if got := store.DecodeBroken("o", 7, store.BreakRequest{By: "a\xff", At: time.Unix(1<<60, 0)}.Note()); got.By != "a?" || !got.At.IsZero() {
		t.Errorf("%+v", got)
	}
	for _, note := range []string{"", "x", "[]", `{"by":1}`} {
		if got := store.DecodeBroken("o", 7, note); *got != (store.Broken{Owner: "o", Token: 7}) {
			t.Errorf("%q: %+v", note, *got)
		}
	}
}

// Redis puts the mark of a broken lease at the beginning of the holder's description, so
// that is where Encode puts it.
func TestBrokenHolder(t *testing.T) {
	h := store.Holder{Host: "h", PID: 7, Purpose: "p", Since: time.Unix(1_700_000_000, 0), Spare: 3}
	whole := h.Encode()
	h.Broken = true
	if got, want := h.Encode(), `{"broken":true,`+whole[1:]; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	h.Owner = "o"
	if got := store.DecodeHolder("o", h.Encode()); got != h {
		t.Errorf("%+v, want %+v", got, h)
	}
	if got := (store.Holder{Broken: true}).Encode(); got != `{"broken":true}` {
		t.Error(got)
	}
}
