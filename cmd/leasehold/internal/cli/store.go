package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/store"
)

// Variables that say where the locks are.
const (
	storeVar     = "LEASEHOLD_STORE"
	storeFileVar = "LEASEHOLD_STORE_FILE"
)

// scheme is one kind of store that a URL can name, as far as the command describes
// it. store.Open opens it.
type scheme struct {
	names []string
	usage string // how to write it, in the help
	help  string
	// single: one URL names the whole store.
	single bool
	// refused says why the command does not open such a store; nil: it does.
	refused error
}

// schemes are all kinds of stores. To add one to the command, add it here, and
// import its package.
var schemes = []scheme{fileScheme, redisScheme, sentinelScheme, clusterScheme, postgresqlScheme, memoryScheme}

// schemeHelp describes the schemes, one paragraph each.
func schemeHelp() string {
	var b strings.Builder
	for _, s := range schemes {
		fmt.Fprintf(&b, "  %s\n", s.usage)
		for line := range strings.SplitSeq(s.help, "\n") {
			fmt.Fprintf(&b, "      %s\n", line)
		}
	}
	return b.String()
}

// storeFlags say where the locks are kept.
type storeFlags struct {
	url, file string
}

func (s *storeFlags) add(f *pflag.FlagSet) {
	f.StringVar(&s.url, "store", "", "where the locks are kept: a `URL` as listed in \"leasehold --help\"\n"+
		"(default: $LEASEHOLD_STORE, or file). All users of a machine can see\narguments: put a password into the variable or into --store-file")
	f.StringVar(&s.file, "store-file", "", "read the URL from `FILE`; several lines name the nodes of one store\n(default: $LEASEHOLD_STORE_FILE)")
}

// urls returns the store URLs from the command line or the environment.
func (s storeFlags) urls(c *cobra.Command) ([]string, error) {
	url := setting{"--store", s.url, c.Flags().Changed("store")}
	file := setting{"--store-file", s.file, c.Flags().Changed("store-file")}
	if url.given && file.given {
		return nil, usage(c, "--store and --store-file exclude each other")
	}
	empty := "is empty: give the store's URL, or leave the flag out for the local file"
	if !url.given && !file.given {
		url, file = variable(storeVar), variable(storeFileVar)
		empty = "is set and empty: give it the store's URL, or unset it for the local file"
		switch { // an empty one beside the other is as good as unset
		case url.given && file.given && url.empty():
			url.given = false
		case url.given && file.given && file.empty():
			file.given = false
		case url.given && file.given:
			return nil, fmt.Errorf("%s and %s are both set: unset one", storeVar, storeFileVar)
		}
	}
	// An empty value is nearly always a variable that was not set where the
	// command line was written. Were it taken for the local file, every machine
	// would hold a lock of its own.
	for _, s := range []setting{url, file} {
		if s.given && s.empty() {
			return nil, fmt.Errorf("%s %s", s.name, empty)
		}
	}
	switch {
	case file.given:
		return readURLs(file.value)
	case url.given:
		// A value that was read from a file often ends in a newline.
		return []string{strings.TrimSpace(url.value)}, nil
	}
	return []string{"file"}, nil
}

// setting is a flag or an environment variable.
type setting struct {
	name, value string
	given       bool
}

func (s setting) empty() bool { return strings.TrimSpace(s.value) == "" }

// variable looks up an environment variable.
func variable(name string) setting {
	value, ok := os.LookupEnv(name)
	return setting{name, value, ok}
}

// readURLs reads a file with one URL per line. It skips empty lines and those
// that begin with #.
func readURLs(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("store file: %w", err)
	}
	var urls []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			urls = append(urls, line)
		}
	}
	if len(urls) == 0 {
		return nil, fmt.Errorf("store file %s contains no URL: write one a line", path)
	}
	return urls, nil
}

var password = regexp.MustCompile(`://[^:\s]*:\S+@|[?&]sentinel_password=.`)

// storeAsked returns the URL of the store and its scheme. The URL can have several lines.
func (p *program) storeAsked(c *cobra.Command) (string, scheme, error) {
	if password.MatchString(p.where.url) {
		p.voice.note("warning: all users of this machine can see the password in --store: put it into %s or into a --store-file", storeVar)
	}
	urls, err := p.where.urls(c)
	if err != nil {
		return "", scheme{}, err
	}
	s, err := schemeOf(urls)
	return strings.Join(urls, "\n"), s, err
}

// openStore opens the store. Its errors contain no credentials.
func (p *program) openStore(ctx context.Context, c *cobra.Command) (store.Store, error) {
	url, s, err := p.storeAsked(c)
	if err != nil {
		return nil, err
	}
	log, settle := p.voice.storeLogger()
	st, err := s.open(ctx, url, log)
	settle(err == nil)
	return st, err
}

// open opens the store that a URL of the scheme names.
func (s scheme) open(ctx context.Context, url string, log *slog.Logger) (store.Store, error) {
	if s.refused != nil {
		return nil, s.refused
	}
	return store.Open(ctx, url, &store.OpenOptions{Logger: log})
}

// schemeOf returns the scheme, which all urls must share.
func schemeOf(urls []string) (scheme, error) {
	var found scheme
	for i, url := range urls {
		name := store.Scheme(url)
		at := slices.IndexFunc(schemes, func(s scheme) bool { return slices.Contains(s.names, name) })
		if at < 0 {
			return scheme{}, unknownScheme(url)
		}
		if i > 0 && schemes[at].usage != found.usage {
			return scheme{}, errors.New("the URLs name different kinds of stores: all of them have to name nodes of one store")
		}
		found = schemes[at]
	}
	if found.single && len(urls) > 1 {
		return scheme{}, fmt.Errorf("a store of this kind has one URL: give one %s: URL", found.names[0])
	}
	return found, nil
}

// unknownScheme names the unknown scheme only if it is certainly one: it might be
// a mistyped secret.
func unknownScheme(url string) error {
	what := "unknown store"
	if name, _, ok := strings.Cut(url, "://"); ok && !strings.ContainsAny(name, ":@/ ") {
		what = fmt.Sprintf("unknown store %q", name+"://")
	}
	var forms []string
	for _, s := range schemes {
		for _, n := range s.names {
			forms = append(forms, n+":")
		}
	}
	return fmt.Errorf("%s: a store's URL begins with one of %s", what, strings.Join(forms, ", "))
}
