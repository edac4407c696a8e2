package store_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/store"
)

// Whatever bytes another program has written as the description of a holder, DecodeHolder
// gives a holder that can be shown on a terminal and as JSON.
func FuzzDecodeHolder(f *testing.F) {
	for _, meta := range []string{
		"", "{}", "null", "[]", "{", `{"host":"h","pid":1,"purpose":"p","since":1790000000}`,
		`{"host":"\u001b[2J","pid":-9223372036854775808,"purpose":"\n\u202e\u009b","since":-1}`,
		`{"since":9223372036854775807}`, `{"since":253402300800}`, `{"since":-62135596801}`, `{"since":1e400}`,
		"{\"host\":\"\xff\xfe\"}", `{"HOST":"h","Pid":7}`,
	} {
		f.Add("owner", meta)
	}
	f.Add("\x00\x1b]0;x\x07", "")
	f.Fuzz(func(t *testing.T, owner, meta string) {
		h := store.DecodeHolder(owner, meta)
		if h.Owner != owner {
			t.Errorf("the owner %q is decoded as %q", owner, h.Owner)
		}
		showable(t, h)
		if again := store.DecodeHolder(owner, h.Encode()); !same(again, h) {
			t.Errorf("%+v, encoded and decoded again, is %+v", h, again)
		}
	})
}

// The description of a holder is decoded as it was encoded, as far as it is text.
func FuzzEncodeHolder(f *testing.F) {
	f.Add("host", 1, "purpose", int64(1790000000))
	f.Add("", 0, "", int64(0))
	f.Add("h\xff\x00\x7f", -1, "a \"b\" <c>\u2028\\", int64(253402300799))
	f.Add("h", 1, "p", int64(-62135596800))
	f.Add("h", 1, "p", int64(1)<<62)
	f.Fuzz(func(t *testing.T, host string, pid int, purpose string, since int64) {
		h := store.Holder{Owner: "o", Host: host, PID: pid, Purpose: purpose, Since: time.Unix(since, 999)}
		text := h.Encode()
		if !utf8.ValidString(text) || !json.Valid([]byte(text)) {
			t.Errorf("%+v is encoded as %q, want valid JSON in UTF-8", h, text)
		}
		got := store.DecodeHolder("o", text)
		showable(t, got)
		if got.PID != pid || utf8.ValidString(host) && got.Host != host || utf8.ValidString(purpose) && got.Purpose != purpose {
			t.Errorf("%+v is decoded as %+v", h, got)
		}
		if year := h.Since.UTC().Year(); since > 0 && year < 9999 && got.Since.Unix() != since {
			t.Errorf("since %v is decoded as %v", h.Since, got.Since)
		}
	})
}

func same(a, b store.Holder) bool {
	return a.Owner == b.Owner && a.Host == b.Host && a.PID == b.PID && a.Purpose == b.Purpose && a.Since.Equal(b.Since)
}

// showable requires that h can be shown on a terminal and as JSON.
func showable(t *testing.T, h store.Holder) {
	t.Helper()
	text := h.String()
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		t.Errorf("%+v prints as %q, want only graphic characters", h, text)
	}
	if len(text) > 2000 {
		t.Errorf("a holder prints in %d bytes, want 2000 at most: %s", len(text), text)
	}
	if _, err := json.Marshal(h.Since); err != nil {
		t.Errorf("since %v cannot be encoded as JSON: %v", h.Since, err)
	}
}

// A holder that gave no PID, such as a client over HTTP, is named by its host alone.
func TestHolderNamesItsProcess(t *testing.T) {
	for want, h := range map[string]store.Holder{
		"h pid 1 (p)": {Owner: "o", Host: "h", PID: 1, Purpose: "p"},
		"h (p)":       {Owner: "o", Host: "h", Purpose: "p"},
		" pid 1":      {Owner: "o", PID: 1},
		"o":           {Owner: "o"},
	} {
		if got := h.String(); got != want {
			t.Errorf("%+v is %q, want %q", h, got, want)
		}
	}
}
