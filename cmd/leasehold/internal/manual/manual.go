// Package manual writes the help of a command and of its subcommands as manual pages.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/help"
)

// Write creates a page of section 1 in dir for c and for each subcommand that its help
// lists, and replaces pages that are there. The version is shown at the foot of each page.
func Write(dir string, c *cobra.Command, version string) error {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(page(c, version)), 0o644); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := Write(dir, sub, version); err != nil {
			return err
		}
	}
	return nil
}

// page returns the manual page of c in the language of man(7).
func page(c *cobra.Command, version string) string {
	var b strings.Builder
	title := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" %s\n", quote(strings.ToUpper(title)), quote("leasehold "+version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(title), escape(lowerFirst(c.Short)))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", escape(c.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	text(&b, help.Long(c))
	options(&b, "OPTIONS", c.NonInheritedFlags())
	options(&b, "GLOBAL OPTIONS", c.InheritedFlags())
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		text(&b, c.Example)
	}
	if related := related(c); len(related) > 0 {
		b.WriteString(".SH SEE ALSO\n")
		for i, r := range related {
			comma := ","
			if i == len(related)-1 {
				comma = ""
			}
			fmt.Fprintf(&b, ".BR %s (1)%s\n", escape(r), comma)
		}
	}
	return b.String()
}

// text writes paragraphs. Lines that begin with spaces keep their form.
func text(b *strings.Builder, s string) {
	kept := false
	begin := func(keep bool) {
		if keep == kept {
			return
		}
		kept = keep
		if keep {
			b.WriteString(".nf\n")
		} else {
			b.WriteString(".fi\n")
		}
	}
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, "\n")
		if strings.TrimSpace(line) == "" {
			begin(false)
			b.WriteString(".PP\n")
			continue
		}
		begin(strings.HasPrefix(line, " "))
		b.WriteString(escape(line) + "\n")
	}
	begin(false)
}

// options writes a section of flags, unless there are none.
func options(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(b, "\\fB\\-%s\\fR, ", escape(f.Shorthand))
		}
		fmt.Fprintf(b, "\\fB\\-\\-%s\\fR", escape(f.Name))
		if value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", escape(value))
		}
		b.WriteString("\n")
		for line := range strings.Lines(usage) {
			b.WriteString(escape(strings.TrimSpace(line)) + "\n")
		}
	})
}

// related returns the pages of the command above c and of those below it.
func related(c *cobra.Command) []string {
	var names []string
	if c.HasParent() {
		names = append(names, strings.ReplaceAll(c.Parent().CommandPath(), " ", "-"))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			names = append(names, strings.ReplaceAll(sub.CommandPath(), " ", "-"))
		}
	}
	slices.Sort(names)
	return names
}

// escape returns text that man(7) prints as it is.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

func quote(s string) string { return `"` + strings.ReplaceAll(escape(s), `"`, `\(dq`) + `"` }

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
