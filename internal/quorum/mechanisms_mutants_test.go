//go:build mutants

package quorum

import (
	"os"
	"strings"
	"testing"
)

// Without any one of the mechanisms of a resize, a test beside finds something else than it wants.
func TestMechanismsAreNeeded(t *testing.T) {
	defer func() { numbersInCommon, setOnAll, timely = true, true, true }()
	numbersInCommon = false
	if c := renewals[2]; renewal(c.said...) == c.want {
		t.Errorf("nodes with the numbers %+v: %s without the mechanism, too", c.said, c.want)
	}
	for story, on := range map[string]*bool{"testdata/resize-one-away.txt": &setOnAll, "testdata/resize-late.txt": &timely} {
		*on = false
		if got, want := lastState(t, story); got == want {
			t.Errorf("%s ends with %q without the mechanism, too", story, want)
		}
		*on = true
	}
}

// lastState returns the state at the end of a story, and the one that the story tells.
func lastState(t *testing.T, story string) (got, want string) {
	text, err := os.ReadFile(story)
	if err != nil {
		t.Fatal(err)
	}
	var by teller
	for line := range strings.Lines(string(text)) {
		told := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "    "):
			want = told
		case strings.HasPrefix(line, "#") || by.Begin(told):
		default:
			if _, got, err = by.Tell(told); err != nil {
				t.Fatal(err)
			}
		}
	}
	return got, want
}
