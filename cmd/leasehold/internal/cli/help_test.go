package cli

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// widest is how many characters a line of help has at most.
const widest = 105

// Every command says what it does, in lines that a terminal can show, and names the values
// of its flags in capitals, as its texts do when they speak of them.
func TestHelpNamesTheValuesOfFlags(t *testing.T) {
	p := &program{voice: &voice{}}
	commands, flags := 0, 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Hidden || !c.IsAvailableCommand() && c.HasParent() || c.CommandPath() == "leasehold help" || strings.HasPrefix(c.CommandPath(), "leasehold completion") {
			return // the last are the texts of the library
		}
		commands++
		if c.Short == "" || c.Long == "" {
			t.Errorf("%s lacks a short or a long description", c.CommandPath())
		}
		if strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: the line %q ends with a full stop, want none", c.CommandPath(), c.Short)
		}
		for line := range strings.Lines(c.Long + "\n" + c.LocalFlags().FlagUsages()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > widest {
				t.Errorf("%s: the help has a line of %d characters, want %d at most:\n%s", c.CommandPath(), n, widest, line)
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			flags++
			if value, _ := pflag.UnquoteUsage(f); !f.Hidden && !regexp.MustCompile(`^([A-Z][A-Z:]*)?$`).MatchString(value) {
				t.Errorf("%s: the help calls the value of --%s %q, want a word in capitals: put one in back quotes", c.CommandPath(), f.Name, value)
			}
		})
	}
	walk(p.root())
	if commands < 20 || flags < 60 {
		t.Errorf("found %d commands with %d flags, want 20 commands with 60 flags at least", commands, flags)
	}
}
