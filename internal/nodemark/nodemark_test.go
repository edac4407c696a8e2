package nodemark

import (
	"errors"
	"testing"
)

func TestMarkIsParsedAsItWasEncoded(t *testing.T) {
	full := Mark{
		Open: true, Opens: 1, ClientOpens: 2, Why: "restarted", Longest: 3, Lengthened: true,
		Print: "0123456789ab", List: "a:1,b:1", Before: "ba9876543210", ReplacedAt: 4,
		Run: "r", Replication: "i", Origin: "o", Durable: 5, ClientDurable: 6,
	}
	const want = "1 open 0123456789ab r i 1 2 restarted 3 5 6 1 ba9876543210 4 o a:1,b:1"
	if text := full.String(); text != want {
		t.Errorf("a mark with all fields is encoded as %q, want %q", text, want)
	}
	for _, m := range []Mark{full, New()} {
		if got, err := Parse(m.String()); err != nil || got != m {
			t.Errorf("%q is parsed as %+v, %v, want %+v", m, got, err, m)
		}
	}
}

// The error for a mark of another version, or for other text, names what it begins with.
func TestOtherVersions(t *testing.T) {
	for text, want := range map[string]string{
		"2":                       "2",
		"10 open":                 "10",
		"":                        "",
		"a text of somebody else": "a",
		"aVeryLongWordThatSomebodyElseHasWritten": "aVeryLongWordThatSom",
		"1":                                                     "1?",
		"1 ajar - - - 0 0 - 0 0 0 0 - 0 - -":                    "1?",
		"1 open - - - 0 0 - 0 0 0 0 - 0 -":                      "1?",
		"1 open - - - 0 0 - 0 0 0 0 - 0 - - -":                  "1?",
		"1 open - - - x 0 - 0 0 0 0 - 0 - -":                    "1?",
		"1 open - - - -1 0 - 0 0 0 0 - 0 - -":                   "1?",
		"1 open - - - 99999999999999999999 0 - 0 0 0 0 - 0 - -": "1?",
	} {
		_, err := Parse(text)
		var v *VersionError
		if !errors.As(err, &v) || v.Version != want {
			t.Errorf("Parse(%q): %v, want a VersionError of version %q", text, err, want)
		}
	}
}
