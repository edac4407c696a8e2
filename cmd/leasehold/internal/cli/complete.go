package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/filestore"
)

// completeOneName completes the name of a lock as the only argument.
func (p *program) completeOneName(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.completeName(c, toComplete)
}

// completeNameThenCommand completes the name of a lock before a command, which is completed as any.
func (p *program) completeNameThenCommand(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return p.completeName(c, toComplete)
}

// completeName offers the names of locks that are held, if the store answers at
// once. It reports no errors: the user is typing.
func (p *program) completeName(c *cobra.Command, toComplete string) ([]string, cobra.ShellCompDirective) {
	var names []string
	askBriefly(p, c, func(ctx context.Context, st *store.Store) {
		states, err := st.List(ctx, toComplete)
		if err != nil {
			return
		}
		for _, s := range states {
			if harmless(s.Name) {
				names = append(names, s.Name)
			}
		}
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

// askBriefly calls fn with the store if that can be opened at once, and creates
// nothing.
func askBriefly(p *program, c *cobra.Command, fn func(context.Context, *store.Store)) {
	p.voice.Quiet = true
	if path, _ := p.missingFolder(c); path != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	st, err := p.openStore(ctx, c)
	if err != nil {
		return
	}
	defer st.Close()
	fn(ctx, st)
}

// completeHolders completes a flag of c with what of returns for each holder of the
// lock that is named.
func completeHolders(p *program, c *cobra.Command, flag string, of func(store.Holding) string) {
	completeFlag(c, flag, func(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		var words []string
		if len(args) == 1 {
			askBriefly(p, c, func(ctx context.Context, st *store.Store) {
				s, _ := st.Inspect(ctx, args[0])
				for _, h := range s.Leases() {
					if word := of(h); harmless(word) && strings.HasPrefix(word, toComplete) {
						words = append(words, word)
					}
				}
			})
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	})
}

// completeFlag has complete offer the values of a flag of c.
func completeFlag(c *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // there is no such flag, or it has one already
	}
}

// harmless reports whether a name can be put on a command line unquoted: no shell
// expands, executes or splits any of its characters, and no command takes it for
// a flag. Anybody who can lock can choose a name, and completion puts it on
// another user's command line.
func harmless(name string) bool {
	for i, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '/', c == '.', c == ':':
		case i > 0 && strings.IndexByte("-+=@%", c) >= 0: // some shells treat a word that begins so specially
		default:
			return false
		}
	}
	return name != ""
}

// missingFolder returns the path of the store's folder if it is not there, and whether that is the user's
// own one.
func (p *program) missingFolder(c *cobra.Command) (path string, own bool) {
	urls, _, err := p.where.urls(c)
	if err != nil || store.Scheme(urls[0]) != fileScheme.names[0] {
		return "", false
	}
	if path, err = filestore.Dir(urls[0]); err != nil {
		return "", false
	}
	if _, err = os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	usual, err := filestore.Dir("file")
	return path, err == nil && usual == path
}

// completeClasses completes the flag --require of c.
func completeClasses(c *cobra.Command) {
	classes := []string{store.CrashSafe.String(), store.Consensus.String()}
	completeFlag(c, "require", cobra.FixedCompletions(classes, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder))
}

// completeStores completes --store with schemes. Nothing is appended to them, since the rest of the
// URL follows.
func completeStores(root *cobra.Command) {
	completeFlag(root, "store", func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
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
}
