package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// DecodeBroken reads a note as BreakRequest.Note wrote it. Other bytes give no note.
func TestBreakNote(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	for _, r := range []store.BreakRequest{
		{},
		{By: "me on host", Reason: "it\nhangs \x00 \"so\" <b>", At: at, Now: true},
		{Reason: strings.Repeat("ü", store.MaxNote/2)},
	} {
		want := store.Broken{Owner: "o", Token: 7, By: r.By, Reason: r.Reason, At: r.At, Now: r.Now}
		if got := store.DecodeBroken("o", 7, r.Note()); *got != want {
			t.Errorf("the note of %+v is read as %+v, want %+v", r, *got, want)
		}
	}
	if got := store.DecodeBroken("o", 7, store.BreakRequest{By: "a\xff", At: time.Unix(1<<60, 0)}.Note()); got.By != "a?" || !got.At.IsZero() {
		t.Errorf("a note with invalid UTF-8 and a time out of range is read as %+v, want By \"a?\" and no time", got)
	}
	for _, note := range []string{"", "x", "[]", `{"by":1}`} {
		if got := store.DecodeBroken("o", 7, note); *got != (store.Broken{Owner: "o", Token: 7}) {
			t.Errorf("the note %q is read as %+v, want only the owner and the token", note, *got)
		}
	}
}

// Encode puts the mark of a broken lease at the beginning of the holder's description, where
// the scripts of Redis put it.
func TestBrokenHolder(t *testing.T) {
	h := store.Holder{Host: "h", PID: 7, Purpose: "p", Since: time.Unix(1_700_000_000, 0)}
	whole := h.Encode()
	h.Broken = true
	if got, want := h.Encode(), `{"broken":true,`+whole[1:]; got != want {
		t.Errorf("Encode: %s, want %s", got, want)
	}
	h.Owner = "o"
	if got := store.DecodeHolder("o", h.Encode()); got != h {
		t.Errorf("DecodeHolder: %+v, want %+v", got, h)
	}
	if got := (store.Holder{Broken: true}).Encode(); got != `{"broken":true}` {
		t.Errorf("Encode of a holder without a description: %s, want only the mark", got)
	}
}
