package objects

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Scheme says how the URLs of a store read, whose options are an O.
type Scheme[O any] struct {
	Name        string // such as s3
	Service     string // what the store is called in errors, such as S3
	Form        string // what follows the name, such as BUCKET/PREFIX
	Credentials string // where credentials are given
	Settings    []Setting[O]
}

// Setting is what a URL can set.
type Setting[O any] struct {
	Name string
	Set  func(o *O, v string) error
}

// Text is a setting of a text.
func Text[O any](name string, field func(*O) *string) Setting[O] {
	return Setting[O]{name, func(o *O, v string) error { *field(o) = v; return nil }}
}

// Time is a setting of a time.
func Time[O any](name string, field func(*O) *time.Duration) Setting[O] {
	return Setting[O]{name, func(o *O, v string) (err error) { *field(o), err = time.ParseDuration(v); return err }}
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

// Parse returns the host of a URL, which is a bucket, and its path, and sets o. Its errors match
// store.ErrInvalid.
func (s Scheme[O]) Parse(raw string, o *O) (bucket, path string, err error) {
	raw = strings.TrimSpace(raw)
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != s.Name || u.Host == "" || u.Fragment != "" || strings.ContainsAny(raw, " \t\r\n") {
		return "", "", fmt.Errorf("%w: the URL of %s has the form %s://%s", store.ErrInvalid, s.Service, s.Name, s.Form)
	}
	if u.User != nil {
		return "", "", fmt.Errorf("%w: the URL of %s has no credentials: give them in %s", store.ErrInvalid, s.Service, s.Credentials)
	}
	if u.Port() != "" {
		return "", "", fmt.Errorf("%w: the URL of %s does not begin with a server: name it as endpoint=https://HOST:PORT", store.ErrInvalid, s.Service)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", "", fmt.Errorf("%w: the settings in the URL of %s cannot be read", store.ErrInvalid, s.Service)
	}
	for name, values := range query {
		set, known := s.setting(name)
		if set == nil {
			return "", "", fmt.Errorf("%w: unknown setting %q of %s: use %s", store.ErrInvalid, store.Excerpt(name), s.Service, known)
		}
		if err := set(o, values[0]); err != nil || len(values) > 1 {
			return "", "", fmt.Errorf("%w: %s=%q cannot be used: it is given once, as a time such as 60s, a name, or true", store.ErrInvalid, name, store.Excerpt(values[0]))
		}
	}
	return u.Host, u.Path, nil
}

// setting returns how to set what name names, or the names that there are.
func (s Scheme[O]) setting(name string) (set func(*O, string) error, known string) {
	var names []string
	for _, k := range s.Settings {
		if k.Name == name {
			return k.Set, ""
		}
		names = append(names, k.Name)
	}
	return nil, strings.Join(names, ", ")
}
