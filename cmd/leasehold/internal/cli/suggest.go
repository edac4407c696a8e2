package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// otherWords are words of other tools for what our commands and flags do.
var otherWords = map[string]string{
	"lock": "run", "exec": "run", "with": "run", "list": "ls", "status": "show", "info": "show", "get": "show", "inspect": "show",
	"unlock": "release", "free": "release", "kill": "break", "steal": "break", "force-unlock": "break", "leader": "elect",
	"tail": "watch", "follow": "watch", "check": "doctor", "init": "schema", "migrate": "schema", "benchmark": "bench",
	"timeout": "wait", "nonblock": "try", "non-block": "try", "no-wait": "try", "nowait": "try", "name": "purpose", "url": "store", "lease": "ttl", "duration": "ttl",
	"for": "wait", "wait": "for", "interval": "every", "force": "now",
}

// suggestion returns the one of words that was probably meant by word, or an empty string.
func suggestion(word string, words []string) string {
	if other := otherWords[word]; slices.Contains(words, other) {
		return other
	}
	best, least := "", len(word)/3+1
	for _, w := range words {
		if d := distance(word, w); d < least {
			best, least = w, d
		}
	}
	if best == "" && len(word) >= 3 {
		begin := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, word) })
		if len(begin) == 1 {
			return begin[0]
		}
	}
	return best
}

// distance is how many letters have to be added, left out, changed or swapped to make b of a.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row := rows[0], rows[1], rows[2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		rows[0], rows[1], rows[2] = above, row, before
	}
	return rows[1][len(b)]
}

// didYouMean ends an error with a suggestion, if there is one.
func didYouMean(what string) string {
	if what == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", what)
}

// noCommand refuses arguments of the program that name no command.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if c.ArgsLenAtDash() == 1 {
		return usage(c, "there is no command %q: did you mean %q?", args[0], c.CommandPath()+" run "+voice.Shown(args[0])+" -- ...")
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	meant := suggestion(args[0], names)
	if meant != "" {
		meant = strconv.Quote(c.CommandPath() + " " + meant)
	}
	return usage(c, "there is no command %q%s", args[0], didYouMean(meant))
}

// noTopic is the error about a word that "help" does not know.
func noTopic(root *cobra.Command, word string, known []string) error {
	meant := suggestion(word, known)
	if meant != "" {
		meant = strconv.Quote(root.CommandPath() + " help " + meant)
	}
	return usage(root, "there is no command or topic %q%s", word, didYouMean(meant))
}

// noFlag is the error about a flag that c does not have.
func noFlag(c *cobra.Command, name string) error {
	var names []string
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	c.NonInheritedFlags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	if len(name) == 1 {
		return usage(c, "there is no flag -%s", name)
	}
	meant := suggestion(name, names)
	if meant != "" {
		meant = "--" + meant
	}
	return usage(c, "there is no flag --%s%s", name, didYouMean(meant))
}

// badTime is the error about the value of a flag that should be a time.
func badTime(c *cobra.Command, flag, value string) error {
	return usage(c, "--%s %q is no time such as 30s, 5m or 1h30m", flag, value)
}

// meantScheme returns the scheme that was probably meant by another word, or an empty string.
func meantScheme(word string) string {
	var names []string
	for _, s := range schemes {
		names = append(names, s.names...)
	}
	if meant := suggestion(word, names); meant != "" {
		return meant + "://"
	}
	return ""
}
