package help

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The groups of the overview.
const (
	Hold    = "Hold"
	Look    = "Look"
	Operate = "Operate"
	Learn   = "Learn"
)

// groups are the commands of each group, in the order of the overview. A command that is in none is
// listed under Learn.
var groups = []struct {
	name     string
	commands []string
}{
	{Hold, []string{"run", "elect", "acquire", "release", "wait"}},
	{Look, []string{"show", "ls", "watch", "serve"}},
	{Operate, []string{"doctor", "break", "resize", "bootstrap", "replace", "acl", "schema"}},
	{Learn, []string{"lab", "bench", "help"}},
}

// unlisted are commands that the overview leaves out.
var unlisted = []string{"completion"}

// longKey is the annotation of a command with all there is to say about it.
const longKey = "long"

// SetLong sets what the manual page of c and "help c --long" say. c.Long is shorter then, and so are
// the flags of its help.
func SetLong(c *cobra.Command, text string) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[longKey] = text
}

// Long returns all there is to say about c.
func Long(c *cobra.Command) string {
	if text, ok := c.Annotations[longKey]; ok {
		return text
	}
	return c.Long
}

// Topic returns a subject as a topic: a command that only has a help.
func Topic(name, short, text string) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Long: text, DisableFlagsInUseLine: true}
}

// Install makes root and its commands print their help as this package has it. unknown returns the error
// about a word that names none of the known commands and topics.
func Install(root *cobra.Command, unknown func(root *cobra.Command, word string, known []string) error) {
	usual := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		switch {
		case c == root:
			fmt.Fprint(c.OutOrStdout(), overview(root))
		case c.Annotations[longKey] != "":
			fmt.Fprint(c.OutOrStdout(), brief(c))
		case c.IsAdditionalHelpTopicCommand():
			fmt.Fprintln(c.OutOrStdout(), c.Long)
		default:
			usual(c, args)
		}
	})
	long := false
	c := &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "Help: a command, stores, exit-codes or json",
		Long: `Prints the help of a command, or about a topic: stores (what --store takes), exit-codes, or
json (what --json prints). With --long it prints all that the manual page has.`,
		Example: `  leasehold help stores
  leasehold help run --long`,
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				var known []string
				for _, sub := range root.Commands() {
					if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
						known = append(known, sub.Name())
					}
				}
				return unknown(root, strings.Join(args, " "), known)
			}
			if long && about.Annotations[longKey] != "" {
				plain := *about
				plain.Long = Long(about)
				_, err := fmt.Fprintf(root.OutOrStdout(), "%s\n\n%s", plain.Long, about.UsageString())
				return err
			}
			return about.Help()
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			above, _, err := root.Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range above.Commands() {
				if strings.HasPrefix(sub.Name(), toComplete) && (sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand()) {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().BoolVar(&long, "long", false, "print all that the manual page has")
	root.SetHelpCommand(c)
}

// overview returns the help of the whole program.
func overview(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(root.Long + "\n\n" + root.Example + "\n\n")
	listed := map[string]bool{}
	for _, name := range unlisted {
		listed[name] = true
	}
	commands := map[string][]*cobra.Command{}
	for _, g := range groups {
		for _, name := range g.commands {
			if c := named(root, name); c != nil {
				commands[g.name], listed[name] = append(commands[g.name], c), true
			}
		}
	}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && !listed[c.Name()] {
			commands[Learn] = append(commands[Learn], c)
		}
	}
	for _, g := range groups {
		title := g.name
		for _, c := range commands[g.name] {
			fmt.Fprintf(&b, "%-9s%-11s%s\n", title, c.Name(), c.Short)
			title = ""
		}
	}
	b.WriteString(`
--store URL, or the variable LEASEHOLD_STORE, says where the locks are kept: "leasehold help
stores". "leasehold COMMAND --help" has the flags of a command.
`)
	return b.String()
}

func named(root *cobra.Command, name string) *cobra.Command {
	all := root.Commands()
	if i := slices.IndexFunc(all, func(c *cobra.Command) bool { return c.Name() == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// mostExamples is how many examples a short help has.
const mostExamples = 4

// brief returns a short help of a command that has a long one.
func brief(c *cobra.Command) string {
	var b strings.Builder
	examples := strings.Join(strings.SplitN(c.Example, "\n", mostExamples+1)[:mostExamples], "\n")
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n\nFlags:\n", c.Long, c.UseLine(), examples)
	flags(&b, c.NonInheritedFlags())
	fmt.Fprintf(&b, "\nEverything, and flags of all commands: \"leasehold help %s --long\", or man %s\n", c.Name(), strings.ReplaceAll(c.CommandPath(), " ", "-"))
	return b.String()
}

// flags writes one line for each flag.
func flags(b *strings.Builder, all *pflag.FlagSet) {
	all.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, text := pflag.UnquoteUsage(f)
		short := "    "
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		usual := ""
		if value != "" && !slices.Contains([]string{"", "0", "0s", "[]"}, f.DefValue) {
			usual = " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, "  %s%-24s %s%s\n", short, strings.TrimSpace("--"+f.Name+" "+value), firstClause(text), usual)
	})
}

// firstClause returns the beginning of a description that makes sense by itself.
func firstClause(text string) string {
	text = strings.ReplaceAll(text, "\n", " ")
	for _, end := range []string{"; ", ". ", ": ", " (", ", as if ", ", even ", ", for the "} {
		text, _, _ = strings.Cut(text, end)
	}
	return text
}
