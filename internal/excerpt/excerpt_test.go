package excerpt

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"short text stays", "ERR max number of clients reached", "ERR max number of clients reached"},
		{"long text is cut", strings.Repeat("x", 60_000), strings.Repeat("x", 300) + "..."},
		{"not within a rune", strings.Repeat("x", 299) + strings.Repeat("ü", 100), strings.Repeat("x", 299) + "..."},
		{"several lines become one", "a\nb", `"a\nb"`},
		{"what a terminal obeys is quoted", "\x1b[2J", `"\x1b[2J"`},
		{"other bytes are quoted", "\xff\xfe", `"\xff\xfe"`},
		{"quotation marks alone are no reason", `user "u"`, `user "u"`},
	} {
		if got := Of(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := Of(strings.Repeat("\x80", 60_000)); len(got) > 4*300+10 {
		t.Errorf("the excerpt of 60 KB of bytes has %d bytes", len(got))
	}
}
