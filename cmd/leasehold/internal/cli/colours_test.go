//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/stories"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/screen"
)

const (
	red, yellow, green, bold = "\x1b[31;1m", "\x1b[33;1m", "\x1b[32;1m", "\x1b[1m"
	plain                    = "\x1b[0m"
)

// A severity has its colour in a finding and in the summary, and the verdict of a story where it
// stands. Nothing else of them is coloured.
func TestColoursOfVerdicts(t *testing.T) {
	findings := []doctor.Finding{
		{Code: "a", Severity: doctor.Error, Message: "message", Advice: "advice"},
		{Code: "b", Severity: doctor.Warning, Message: "message", Advice: "advice"},
		{Code: "c", Severity: doctor.Info, Message: "message", Advice: "advice"},
	}
	end := func(o stories.Outcome) stories.Event {
		return stories.Event{Kind: stories.End, Outcome: o, What: "why"}
	}
	for _, c := range []struct {
		what, want string
		print      func(screen.Colours) string
	}{
		{"findings", red + "error" + plain + ": a\n  message\n  -> advice\n\n" + yellow + "warning" + plain + ": b\n  message\n  -> advice\n\n" +
			bold + "info" + plain + ": c\n  message\n  -> advice\n\n" + red + "1 error" + plain + ", " + yellow + "1 warning" + plain + "\n",
			func(in screen.Colours) string {
				var b strings.Builder
				if err := writeFindings(&b, findings, in); err != nil {
					t.Fatal(err)
				}
				return b.String()
			}},
		{"no findings", green + "No problems found." + plain, func(in screen.Colours) string { return summary(nil, in) }},
		{"a verdict", green + "PASS" + plain + ": as expected", func(in screen.Colours) string { return verdictIn(in, "PASS: as expected") }},
		{"a bad verdict", red + "FAIL" + plain + ": PASS", func(in screen.Colours) string { return verdictIn(in, "FAIL: PASS") }},
		{"no verdict", yellow + "NONE" + plain + ": x", func(in screen.Colours) string { return verdictIn(in, "NONE: x") }},
		{"a line without a verdict", "it did PASS", func(in screen.Colours) string { return verdictIn(in, "it did PASS") }},
		{"a part that held", strings.Replace(end(stories.Held).Text(), "HELD", green+"HELD"+plain, 1), func(in screen.Colours) string { return coloured(in, end(stories.Held)) }},
		{"a part that broke", strings.Replace(end(stories.Broken).Text(), "BROKEN", red+"BROKEN"+plain, 1), func(in screen.Colours) string { return coloured(in, end(stories.Broken)) }},
		{"a part that failed", strings.Replace(end(stories.Failed).Text(), "FAILED", red+"FAILED"+plain, 1), func(in screen.Colours) string { return coloured(in, end(stories.Failed)) }},
	} {
		if got := c.print(true); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		without := strings.NewReplacer(red, "", yellow, "", green, "", bold, "", plain, "").Replace(c.want)
		if got := c.print(false); got != without {
			t.Errorf("%s without colours: %q, want %q", c.what, got, without)
		}
	}
}
