package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Variables that say where the locks are.
const (
	storeVar     = "LEASEHOLD_STORE"
	storeFileVar = "LEASEHOLD_STORE_FILE"
)

// storeFlags say where the locks are kept.
type storeFlags struct {
	url, file string
}

func (s *storeFlags) add(f *pflag.FlagSet) {
	f.StringVar(&s.url, "store", "", "where the locks are kept: a `URL`: see \"leasehold help stores\"\n"+
		"(default: $LEASEHOLD_STORE, or file). All users of a machine can see\narguments: put a password into the variable or into --store-file")
	f.StringVar(&s.file, "store-file", "", "read the URL from `FILE`; several lines name the nodes of one store\n(default: $LEASEHOLD_STORE_FILE)")
}

// urls returns the store URLs from the command line or the environment, and which flag, variable or
// file they are from, for errors. That is empty if nothing was said.
func (s storeFlags) urls(c *cobra.Command) (urls []string, from string, err error) {
	const aURL, aFile = "the store's URL", "a file with the store's URL"
	url := setting{"--store", aURL, s.url, c.Flags().Changed("store")}
	file := setting{"--store-file", aFile, s.file, c.Flags().Changed("store-file")}
	if url.given && file.given {
		return nil, "", usage(c, "--store and --store-file exclude each other")
	}
	empty := "is empty: give %s, or leave the flag out for the local file"
	if !url.given && !file.given {
		url, file = variable(storeVar, aURL), variable(storeFileVar, aFile)
		empty = "is set and empty: give it %s, or unset it for the local file"
		switch { // an empty one beside the other is as good as unset
		case url.given && file.given && url.empty():
			url.given = false
		case url.given && file.given && file.empty():
			file.given = false
		case url.given && file.given:
			return nil, "", fmt.Errorf("%s and %s are both set: unset one", storeVar, storeFileVar)
		}
	}
	// An empty value is nearly always a variable that was not set where the
	// command line was written. Were it taken for the local file, every machine
	// would hold a lock of its own.
	for _, s := range []setting{url, file} {
		if s.given && s.empty() {
			return nil, "", fmt.Errorf("%s "+empty, s.name, s.wanted)
		}
	}
	switch {
	case file.given:
		urls, err := readURLs(file.value)
		return urls, file.name + " " + voice.Shown(file.value), err
	case url.given:
		// A value that was read from a file often ends in a newline.
		return []string{strings.TrimSpace(url.value)}, url.name, nil
	}
	return []string{"file"}, "", nil
}

// setting is a flag or an environment variable.
type setting struct {
	name, wanted string // what it is called, and what its value should be
	value        string
	given        bool
}

func (s setting) empty() bool { return strings.TrimSpace(s.value) == "" }

// variable looks up an environment variable, whose value should be wanted.
func variable(name, wanted string) setting {
	value, ok := os.LookupEnv(name)
	return setting{name, wanted, value, ok}
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
