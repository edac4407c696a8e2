package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/store"
)

var password = regexp.MustCompile(`://[^:\s]*:\S+@|[?&]sentinel_password=.`)

// storeAsked returns the URL of the store and its scheme. The URL can have several lines.
func (p *program) storeAsked(c *cobra.Command) (string, scheme, error) {
	if password.MatchString(p.where.url) {
		p.voice.Note("warning: all users of this machine can see the password in --store: put it into %s or into a --store-file", storeVar)
	}
	urls, from, err := p.where.urls(c)
	if err != nil {
		return "", scheme{}, err
	}
	s, err := schemeOf(urls)
	return strings.Join(urls, "\n"), s, saidIn(from, err)
}

// saidIn adds to an error about a URL where the URL is from.
func saidIn(from string, err error) error {
	if err == nil || from == "" {
		return err
	}
	return fmt.Errorf("%s: %w", from, err)
}

// openStore opens the store. Its errors contain no credentials.
func (p *program) openStore(ctx context.Context, c *cobra.Command) (*store.Store, error) {
	log, settle := p.voice.StoreLogger()
	st, err := p.open(ctx, c, store.OpenOptions{Logger: log})
	settle(err == nil)
	return st, err
}

// open opens the store. Its errors contain no credentials.
func (p *program) open(ctx context.Context, c *cobra.Command, o store.OpenOptions) (*store.Store, error) {
	url, s, err := p.storeAsked(c)
	if err != nil {
		return nil, err
	}
	st, err := s.open(ctx, url, o)
	if errors.Is(err, store.ErrInvalid) {
		_, from, _ := p.where.urls(c)
		err = saidIn(from, err)
	}
	return st, err
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
		if !slices.Contains([]string{"file", "unix", "memory"}, name) && !strings.Contains(url, "://") {
			return scheme{}, fmt.Errorf("%s: is followed by two slashes: write %[1]s://", name)
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
	if strings.HasPrefix(url, "/") || strings.HasPrefix(url, "./") || strings.HasPrefix(url, "../") {
		return errors.New("a path is no URL: write file: before it, for a folder of locks (see \"leasehold help stores\")")
	}
	name, _, ok := strings.Cut(url, "://")
	if !ok || strings.ContainsAny(name, ":@/ ") {
		return errors.New("it is no URL of a store, which begins with a scheme such as redis:// or file: (see \"leasehold help stores\")")
	}
	if meant := meantScheme(name); meant != "" {
		return fmt.Errorf("unknown store %q%s", name+"://", didYouMean(meant))
	}
	var known []string
	for _, s := range schemes {
		known = append(known, s.names...)
	}
	return fmt.Errorf("unknown store %q: there are %s (see \"leasehold help stores\")", name+"://", strings.Join(known, ", "))
}
