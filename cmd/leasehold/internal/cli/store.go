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

// schemes are all kinds of stores. To add one to the command, add it here, and
// import its package.
var schemes = []scheme{fileScheme, redisScheme, sentinelScheme, clusterScheme, postgresqlScheme, mysqlScheme, etcdScheme, zookeeperScheme, natsScheme, s3Scheme, remoteScheme, memoryScheme}

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
func (p *program) openStore(ctx context.Context, c *cobra.Command) (*store.Store, error) {
	url, s, err := p.storeAsked(c)
	if err != nil {
		return nil, err
	}
	log, settle := p.voice.storeLogger()
	st, err := s.open(ctx, url, log)
	settle(err == nil)
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
