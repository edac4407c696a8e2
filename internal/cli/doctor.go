package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/store"
)

// doctorFlags are those of "doctor".
type doctorFlags struct {
	ttl    time.Duration
	prefix string
	asJSON bool
}

func (p *program) doctorCommand() *cobra.Command {
	o := doctorFlags{}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what endangers the locks of a store",
		Long: `Examines a store and prints what it found that endangers locks, worst first, with
what to do about it: servers that are down, slow, not independent or in the wrong
role, that lose data or remove keys, whose clocks differ; rights that are missing;
keys that are in the way. A store that can not be reached is a finding too.

It goes the way that locks go, with the same user and settings, and changes no
lock: what it tries, it tries on a name nobody uses, and removes afterwards. Some
of what it looks at needs more rights than locking ("leasehold acl --for doctor");
what it may not see it says. It takes some seconds at most.

How long servers may take to answer depends on the TTL of the locks: --ttl. With
--prefix it is about locks whose names begin so: rights are tried for these, and
all keys that begin so are looked at. Without, rights are tried for any name, and
keys looked at that belong to names locked here in the last day.

With --json, which programs can rely on, it prints an object with
  findings  an array of objects, worst first, each with
              severity  "error": locks do not work, or two can hold one;
                        "warning": they will not some day, or promise less than
                        they seem to; "info": nothing has to be done
              code      what kind of finding; docs/doctor.md lists them
              node      the server or file it is about, "" for the whole store
              message   what is so, and what follows from it, for people
              advice    what to do, for people
Fields and codes may be added; none is renamed or removed.

Exit codes: 0 nothing found, or only information; 1 warnings; 2 errors; 125
trouble of leasehold's own (wrong usage).`,
		Example: `  leasehold doctor --store redis://a,b,c --ttl 10s
  leasehold doctor --json | jq -r '.findings[] | select(.severity == "error") | .message'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(c, "it takes no arguments")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return p.doctor(c, o) },
	}
	f := c.Flags()
	f.DurationVar(&o.ttl, "ttl", leasehold.DefaultTTL, "TTL of the locks")
	f.StringVar(&o.prefix, "prefix", "", "what the names of the locks begin with")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	return c
}

// doctor is the whole of "leasehold doctor".
func (p *program) doctor(c *cobra.Command, o doctorFlags) error {
	if o.ttl < store.MinTTL {
		return usage(c, "--ttl %v is too short: the least is %v", o.ttl, store.MinTTL)
	}
	urls, s, err := p.storeAsked(c)
	if err != nil {
		return err
	}
	examine, ok := examiners[s.names[0]]
	if !ok {
		return fmt.Errorf("what endangers the locks of %s: is not known", s.names[0])
	}
	p.voice.status("examining the store ...")
	findings, err := examine(context.Background(), urls, o) // a signal just ends us: what is tried ends by itself
	p.voice.status("")
	p.voice.flush(time.Second)
	if err != nil {
		return err
	}
	for i := range findings {
		findings[i].Message = oneLine(findings[i].Message)
	}
	switch {
	case o.asJSON:
		err = writeJSON(p.stdout, struct {
			Findings []doctor.Finding `json:"findings"`
		}{findings})
	case !p.voice.quiet:
		err = writeFindings(p.stdout, findings)
	}
	if worst := doctor.Worst(findings); err == nil && worst > doctor.Info {
		err = &exitError{code: int(worst)}
	}
	return err
}

// oneLine is text of others, servers among them, as it can be printed.
func oneLine(s string) string { return strings.Join(strings.Fields(safe(s)), " ") }

// writeFindings prints findings for people, those of one code together.
func writeFindings(w io.Writer, findings []doctor.Finding) error {
	var b strings.Builder
	counts := map[doctor.Severity]int{}
	for i, f := range findings {
		counts[f.Severity]++
		if i == 0 || findings[i-1].Code != f.Code || findings[i-1].Severity != f.Severity {
			fmt.Fprintf(&b, "%s: %s\n", f.Severity, f.Code)
		}
		fmt.Fprint(&b, "  ")
		if f.Node != "" {
			fmt.Fprintf(&b, "%s: ", safe(f.Node))
		}
		fmt.Fprintln(&b, f.Message)
		if i == len(findings)-1 || findings[i+1].Code != f.Code || findings[i+1].Severity != f.Severity {
			fmt.Fprintf(&b, "  -> %s\n\n", f.Advice)
		}
	}
	fmt.Fprintln(&b, summary(counts))
	_, err := io.WriteString(w, b.String())
	return err
}

// summary says how many findings of each severity there are.
func summary(counts map[doctor.Severity]int) string {
	var parts []string
	for _, s := range []doctor.Severity{doctor.Error, doctor.Warning} {
		switch n := counts[s]; {
		case n == 1:
			parts = append(parts, "1 "+s.String())
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, s))
		}
	}
	if len(parts) == 0 {
		return "Nothing was found that endangers locks."
	}
	return strings.Join(parts, ", ")
}
