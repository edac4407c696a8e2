package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// widest is how many characters a line of help has at most.
const widest = 105

// Every command says what it does, in lines that a terminal can show, and names the values
// of its flags in capitals, as its texts do when they speak of them.
func TestHelpNamesTheValuesOfFlags(t *testing.T) {
	p := &program{voice: &voice.Voice{}}
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
		if c.HasParent() && !c.HasSubCommands() && c.RunE != nil && !strings.Contains(c.Example, c.CommandPath()) && c.CommandPath() != "leasehold lab list" {
			t.Errorf("%s has the example %q, want one with the command", c.CommandPath(), c.Example)
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

// The overview and the help of run fit on a screen. The manual and "help run --long" say the rest.
func TestHelpIsShort(t *testing.T) {
	said := func(args ...string) string {
		t.Helper()
		out, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		p := &program{voice: &voice.Voice{}, stdout: out, stderr: out}
		root := p.root()
		root.SetArgs(append([]string{}, args...)) // with nil, cobra reads the arguments of this program
		if err := root.Execute(); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	overview := said("--help")
	if bare := said(); bare != overview {
		t.Errorf("without arguments:\n%s\nwant what --help prints", bare)
	}
	for _, c := range []struct {
		text string
		most int
	}{{overview, 30}, {said("run", "--help"), 40}} {
		if n := strings.Count(c.text, "\n"); n > c.most {
			t.Errorf("%d lines, want %d at most:\n%s", n, c.most, c.text)
		}
		for line := range strings.Lines(c.text) {
			if n := utf8.RuneCountInString(line); n > 96 {
				t.Errorf("a line of %d characters, want 95 at most: %s", n-1, line)
			}
		}
	}
	for _, part := range []string{"\nHold     run ", "\nLook     show ", "\nOperate  doctor ", "\nLearn    lab ", "  leasehold run nightly-backup -- ", "help\nstores"} {
		if !strings.Contains(overview, part) {
			t.Errorf("the overview lacks %q:\n%s", part, overview)
		}
	}
	long := said("help", "run", "--long")
	for _, part := range []string{"A guard process beside the command", "LEASEHOLD_DEADLINE", "--textfile DIR", "--store URL"} {
		if !strings.Contains(long, part) {
			t.Errorf("help run --long lacks %q", part)
		}
	}
	if text := said("run", "--help"); strings.Contains(text, "A guard process") || !strings.Contains(text, "leasehold help run --long") {
		t.Errorf("run --help:\n%s\nwant where the rest is", text)
	}
	for topic, part := range map[string]string{"stores": "redis://USER:PASSWORD@HOST:PORT", "exit-codes": "  123    run: the lock was lost", "json": "  expires_in_ms  milliseconds"} {
		if text := said("help", topic); !strings.Contains(text, part) || strings.Contains(text, "Usage:") {
			t.Errorf("help %s:\n%s\nwant text with %q", topic, text, part)
		}
	}
	if text := said("--version"); !regexp.MustCompile(`^leasehold \S+, (unknown commit|commit [0-9a-f]+( \(modified\))?), go1\.\S+ \S+/\S+\n$`).MatchString(text) {
		t.Errorf("--version prints %q, want the version, the commit and the version of Go", text)
	}
}

// The version of a module that was fetched names a commit.
func TestPseudoVersionNamesACommit(t *testing.T) {
	for version, want := range map[string]string{
		"v0.0.0-20261129025229-c31a6c61c983":       "c31a6c61c983",
		"v0.1.1-0.20261129025229-c31a6c61c983":     "c31a6c61c983",
		"v0.0.0-20261129025229-c31a6c61c983+dirty": "c31a6c61c983",
		"v0.1.0":  "",
		"(devel)": "",
	} {
		got := ""
		if at := pseudo.FindStringSubmatch(version); at != nil {
			got = at[1]
		}
		if got != want {
			t.Errorf("%s: commit %q, want %q", version, got, want)
		}
	}
}
