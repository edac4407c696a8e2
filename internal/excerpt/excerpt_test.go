package excerpt

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"short text stays", "ERR max number of clients reached", "ERR max number of clients reached"},
		{"long text is cut", strings.Repeat("x", 60_000), strings.Repeat("x", 300) + "..."},
		{"text is not cut within a rune", strings.Repeat("x", 299) + strings.Repeat("ü", 100), strings.Repeat("x", 299) + "..."},
		{"a line break is quoted", "a\nb", `"a\nb"`},
		{"control characters are quoted", "\x1b[2J", `"\x1b[2J"`},
		{"invalid UTF-8 is quoted", "\xff\xfe", `"\xff\xfe"`},
		{"quotation marks alone are not quoted", `user "u"`, `user "u"`},
	} {
		if got := Of(c.text); got != c.want {
			t.Errorf("%s: Of(%.30q) = %q, want %q", c.name, c.text, got, c.want)
		}
	}
	if got := Of(strings.Repeat("\x80", 60_000)); len(got) > 4*300+10 {
		t.Errorf("the excerpt of 60 KB of invalid UTF-8 has %d bytes, want %d at most", len(got), 4*300+10)
	}
}
