package rights

import (
	"strings"
	"testing"
)

const token = `"token_sha256":["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]`

// A file that is wrong is refused, and says where.
func TestWrongFiles(t *testing.T) {
	for text, want := range map[string]string{
		``:                              "EOF",
		`{"clients":[]}]`:               "more than one",
		`{"client":[]}`:                 "client",
		`{"clients":[{"name":"a"}]}`:    "neither",
		`{"clients":[{` + token + `}]}`: "characters",
		`{"clients":[{"name":"a\n",` + token + `}]}`:                                        "control",
		`{"clients":[{"name":"a","token_sha256":["00"]}]}`:                                  "64",
		`{"clients":[{"name":"a","token_sha256":["` + strings.Repeat("0", 66) + `"]}]}`:     "64",
		`{"clients":[{"name":"a",` + token + `},{"name":"a",` + token + `}]}`:               "two clients",
		`{"clients":[{"name":"a",` + token + `},{"name":"b",` + token + `}]}`:               "same token",
		`{"clients":[{"name":"a",` + token + `,"rules":[{"rights":["look"]}]}]}`:            "prefix",
		`{"clients":[{"name":"a",` + token + `,"rules":[{"prefix":"","rights":["own"]}]}]}`: "own",
		`{"clients":[{"name":"a",` + token + `,"limits":{"names":-1}}]}`:                    "negative",
		`{"clients":[{"name":"a","subjects":[""]}]}`:                                        "empty",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}

// Whatever a file is, it is refused, or each client in it is known by its token and may do only
// what a rule says.
func FuzzRightsFile(f *testing.F) {
	f.Add(`{"clients":[{"name":"a",` + token + `,"rules":[{"prefix":"x/","rights":["look","lock"]}]}]}`)
	f.Add(`{"clients":[{"name":"a","subjects":["CN=a"]}]}`)
	f.Add(`{"clients":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parse([]byte(text))
		if err != nil {
			return
		}
		for _, c := range s.byToken {
			if c.Name == "" {
				t.Error("a client without a name")
			}
			for _, right := range []Right{Look, Lock, Break} {
				if c.May(right, "x/y") && !c.MayAny(right) || c.ReadOnly().May(right, "x/y") && right != Look {
					t.Errorf("%s may %v", c.Name, right)
				}
			}
		}
	})
}
