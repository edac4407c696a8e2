package objects

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/store"
)

// Common is where the options of an engine are that others have, too. A nil field is an option that
// the engine does not have.
type Common struct {
	Bucket              *string // the host of the URL
	Prefix, Endpoint    *string
	Skew, Poll, Timeout *time.Duration
	Logger              **slog.Logger
}

// Setting is what the URLs of one engine can set, whose options are an O.
type Setting[O any] struct {
	Name string
	Set  func(o *O, v string) error
}

// Text is a setting of a text.
func Text[O any](name string, field func(*O) *string) Setting[O] {
	return Setting[O]{name, func(o *O, v string) error { *field(o) = v; return nil }}
}

// True is a setting that can only be true.
func True[O any](name string, field func(*O) *bool) Setting[O] {
	return Setting[O]{name, func(o *O, v string) error {
		if *field(o) = true; v != "true" {
			return errors.New("it can only be true")
		}
		return nil
	}}
}

// Options returns the options with what a URL sets, and with defaults. It connects to nothing. Its
// errors match store.ErrInvalid.
func (e Engine[O, D]) Options(raw string, given *O) (O, error) {
	var says O
	bucket, err := e.parse(raw, &says)
	if err != nil {
		return says, err
	}
	o, err := settings.Join(given, says)
	if err != nil {
		return o, err
	}
	c := e.Common(&o)
	*c.Bucket = bucket
	if c.Prefix != nil {
		*c.Prefix = cmp.Or(strings.Trim(*c.Prefix, "/"), "leasehold")
	}
	if c.Endpoint != nil {
		*c.Endpoint = strings.TrimRight(*c.Endpoint, "/")
	}
	if err := e.Complete(&o); err != nil {
		return o, err
	}
	*c.Timeout = cmp.Or(*c.Timeout, 10*time.Second)
	if c.Poll != nil {
		*c.Poll = cmp.Or(*c.Poll, time.Second)
	}
	return o, c.check()
}

// parse returns the host of a URL, which is a bucket, and sets o.
func (e Engine[O, D]) parse(raw string, o *O) (bucket string, err error) {
	raw = strings.TrimSpace(raw)
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != e.Scheme || u.Host == "" || u.Fragment != "" || strings.ContainsAny(raw, " \t\r\n") {
		return "", fmt.Errorf("%w: the URL of %s has the form %s://%s", store.ErrInvalid, e.Service, e.Scheme, e.Form)
	}
	if u.User != nil {
		return "", fmt.Errorf("%w: the URL of %s has no credentials: give them in %s", store.ErrInvalid, e.Service, e.Credentials)
	}
	if u.Port() != "" {
		return "", fmt.Errorf("%w: the URL of %s does not begin with a server: name it as %s", store.ErrInvalid, e.Service, e.Server)
	}
	c := e.Common(o)
	if path := strings.Trim(u.Path, "/"); c.Prefix != nil {
		*c.Prefix = path
	} else if path != "" {
		return "", fmt.Errorf("%w: the URL of %s has the form %s://%s, and nothing after it but settings", store.ErrInvalid, e.Service, e.Scheme, e.Form)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", fmt.Errorf("%w: the settings in the URL of %s cannot be read", store.ErrInvalid, e.Service)
	}
	all := slices.Concat(e.Settings, common[O](c))
	for name, values := range query {
		i := slices.IndexFunc(all, func(s Setting[O]) bool { return s.Name == name })
		if i < 0 {
			var known []string
			for _, s := range all {
				known = append(known, s.Name)
			}
			return "", fmt.Errorf("%w: unknown setting %q of %s: use %s", store.ErrInvalid, store.Excerpt(name), e.Service, strings.Join(known, ", "))
		}
		if err := all[i].Set(o, values[0]); err != nil || len(values) > 1 {
			return "", fmt.Errorf("%w: %s=%q cannot be used: it is given once, as a time such as 60s, a name, or true", store.ErrInvalid, name, store.Excerpt(values[0]))
		}
	}
	return u.Host, nil
}

// common returns the settings of the options in c.
func common[O any](c Common) (all []Setting[O]) {
	if c.Endpoint != nil {
		all = append(all, Text("endpoint", func(*O) *string { return c.Endpoint }))
	}
	for i, field := range []*time.Duration{c.Skew, c.Poll, c.Timeout} {
		if field != nil {
			all = append(all, Setting[O]{[]string{"skew", "poll", "timeout"}[i], func(_ *O, v string) (err error) { *field, err = time.ParseDuration(v); return err }})
		}
	}
	return all
}

var prefixForm = regexp.MustCompile(`^[A-Za-z0-9!_.*'()-]+(/[A-Za-z0-9!_.*'()-]+)*$`)

// check returns an error if the prefix of all keys, the URL of the server or a time cannot be used.
func (c Common) check() error {
	if *c.Skew < 0 || c.Poll != nil && *c.Poll < 0 || *c.Timeout < 0 {
		return fmt.Errorf("%w: times cannot be negative", store.ErrInvalid)
	}
	if p := c.Prefix; p != nil {
		parts := strings.Split(*p, "/") // some servers take . and .. for folders
		if !prefixForm.MatchString(*p) || len(*p) > 512 || slices.Contains(parts, ".") || slices.Contains(parts, "..") {
			return fmt.Errorf("%w: prefix %q: use letters, digits, - and _, with single slashes in between", store.ErrInvalid, store.Excerpt(*p))
		}
	}
	if c.Endpoint == nil || *c.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(*c.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%w: the endpoint has the form https://HOST:PORT, without credentials", store.ErrInvalid)
	}
	return nil
}
