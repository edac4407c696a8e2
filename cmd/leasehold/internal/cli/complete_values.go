package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/store"
)

// completeValues completes a flag of c with words.
func completeValues(c *cobra.Command, flag string, words ...string) {
	offer := func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		var fit []string
		for _, w := range words {
			if strings.HasPrefix(w, toComplete) {
				fit = append(fit, w)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
	if err := c.RegisterFlagCompletionFunc(flag, offer); err != nil {
		panic(err) // there is no such flag, or it has one already
	}
}

// completeTimesOf completes all flags of c that are times and have no words of their own.
func completeTimesOf(c *cobra.Command) {
	usual := []string{"5s", "10s", "30s", "1m", "5m", "10m", "1h"}
	for name, times := range map[string][]string{
		"ttl": usual, "wait": usual, "for": usual, "max-hold": {"1m", "10m", "30m", "1h"}, "min-hold": {"1s", "5s", "30s", "1m"},
		"grace": {"1s", "5s", "10s"}, "once-per": {"1m", "5m", "10m", "1h", "24h"}, "once-offset": {"30m", "1h", "3h30m"},
	} {
		if f := c.Flags().Lookup(name); f != nil && f.Name == name && f.Value.Type() == "duration" {
			completeValues(c, f.Name, times...)
		}
	}
}

// completeClasses completes the flag --require of c.
func completeClasses(c *cobra.Command) {
	completeValues(c, "require", store.CrashSafe.String(), store.Consensus.String())
}

// completeStores completes --store with schemes. Nothing is appended to them, since the rest of the
// URL follows.
func completeStores(root *cobra.Command) {
	err := root.RegisterFlagCompletionFunc("store", func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		var fit []string
		for _, s := range schemes {
			if s.refused != nil {
				continue
			}
			for _, name := range s.names {
				if name != "file" && name != "unix" {
					name += "://"
				} else {
					name += ":"
				}
				if strings.HasPrefix(name, toComplete) {
					fit = append(fit, name)
				}
			}
		}
		return fit, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // there is no such flag
	}
}
