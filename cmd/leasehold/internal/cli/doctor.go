package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lockview"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/screen"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

// doctorFlags are the flags of "doctor".
type doctorFlags struct {
	ttl    time.Duration
	prefix string
	asJSON bool
}

func doctorCommand(p *program) *cobra.Command {
	o := doctorFlags{}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check a store for problems",
		Long: `Examines a store and prints what it finds wrong, worst first, with what to do about
it: servers that are down, slow, not independent or in the wrong role, that lose
data or evict keys, or whose clocks differ; missing rights; keys that are in the
way. A store that cannot be reached is a finding too.

It uses the same connection settings and user as locking does, and changes no
lock: it tries things on an unused name and cleans up. Some checks need more rights
than locking ("leasehold acl --for doctor"); it says what it could not check. It
takes a few seconds.

How fast servers have to answer depends on the TTL of your locks: give it with
--ttl. With --prefix it checks the rights for names that begin with the prefix, and
all keys with the prefix. Without --prefix it checks the rights for any name, and the
keys of locks that were used in the last day.

With --json, a stable interface, it prints an object with
  findings  an array of objects, worst first, each with
              severity  "error": locks do not work, or a lock can have two
                        holders; "warning": they will stop working some day, or
                        promise less than it seems; "info": nothing to do
              code      the kind of finding; docs/doctor.md lists them
              node      the server or file it is about, "" for the whole store
              message   what is wrong and what follows from it, for people
              advice    what to do, for people
Fields and codes may be added; none is renamed or removed.

Exit codes: 0 nothing found, or only information; 1 warnings; 2 errors; 125 if
leasehold itself failed, for example on wrong usage.`,
		Example: `  leasehold doctor --store redis://a,b,c --ttl 10s
  leasehold doctor --json | jq -r '.findings[] | select(.severity == "error") | .message'`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return p.doctor(c, o) },
	}
	f := c.Flags()
	f.DurationVar(&o.ttl, "ttl", leasehold.DefaultTTL, "the `TTL` of the locks")
	f.StringVar(&o.prefix, "prefix", "", "check only locks whose names begin with `PREFIX`")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	return c
}

// doctor runs "leasehold doctor".
func (p *program) doctor(c *cobra.Command, o doctorFlags) error {
	if o.ttl < store.MinTTL {
		return usage(c, "--ttl %v is too short: the minimum is %v", o.ttl, store.MinTTL)
	}
	url, s, err := p.storeAsked(c)
	if err != nil {
		return err
	}
	examine, ok := examiners[s.names[0]]
	if !ok {
		return fmt.Errorf("doctor cannot examine stores of the scheme %s", s.names[0])
	}
	p.voice.Status("examining the store ...")
	findings, err := examine(context.Background(), url, o) // a signal just ends us: what is tried ends by itself
	p.voice.Status("")
	p.voice.Flush(time.Second)
	if err != nil {
		return err
	}
	for i := range findings {
		findings[i].Message = oneLine(findings[i].Message)
	}
	switch {
	case o.asJSON:
		err = lockview.WriteJSON(p.stdout, struct {
			Findings []doctor.Finding `json:"findings"`
		}{findings})
	case !p.voice.Quiet:
		err = writeFindings(p.stdout, findings, screen.ColoursOn(p.stdout))
	}
	if worst := doctor.Worst(findings); err == nil && worst > doctor.Info {
		err = &exitError{code: int(worst)}
	}
	return err
}

// oneLine is text of others, servers among them, as it can be printed.
func oneLine(s string) string { return strings.Join(strings.Fields(voice.Safe(s)), " ") }

// writeFindings prints findings for people, grouped by code.
func writeFindings(w io.Writer, findings []doctor.Finding, in screen.Colours) error {
	var b strings.Builder
	counts := map[doctor.Severity]int{}
	for i, f := range findings {
		counts[f.Severity]++
		if i == 0 || findings[i-1].Code != f.Code || findings[i-1].Severity != f.Severity {
			fmt.Fprintf(&b, "%s: %s\n", severityIn(in, f.Severity), f.Code)
		}
		fmt.Fprint(&b, "  ")
		if f.Node != "" {
			fmt.Fprintf(&b, "%s: ", voice.Safe(f.Node))
		}
		fmt.Fprintln(&b, f.Message)
		if i == len(findings)-1 || findings[i+1].Code != f.Code || findings[i+1].Severity != f.Severity {
			fmt.Fprintf(&b, "  -> %s\n\n", f.Advice)
		}
	}
	fmt.Fprintln(&b, summary(counts, in))
	_, err := io.WriteString(w, b.String())
	return err
}

// colourOf returns what colours text as a severity.
func colourOf(in screen.Colours, s doctor.Severity) func(string) string {
	switch s {
	case doctor.Error:
		return in.Red
	case doctor.Warning:
		return in.Yellow
	}
	return in.Bold
}

func severityIn(in screen.Colours, s doctor.Severity) string { return colourOf(in, s)(s.String()) }

// summary counts the findings of each severity in words.
func summary(counts map[doctor.Severity]int, in screen.Colours) string {
	var parts []string
	for _, s := range []doctor.Severity{doctor.Error, doctor.Warning} {
		if n := counts[s]; n > 0 {
			parts = append(parts, colourOf(in, s)(voice.Count(n, s.String())))
		}
	}
	if len(parts) == 0 {
		return in.Green("No problems found.")
	}
	return strings.Join(parts, ", ")
}
