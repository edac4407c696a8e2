package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

func init() {
	for _, scheme := range []string{"postgres", "postgresql"} {
		store.Register(scheme, openURL)
	}
}

// openURL implements store.OpenFunc.
func openURL(ctx context.Context, url string, o store.OpenOptions) (store.Store, error) {
	u, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	u.Options.Logger = o.Logger
	s, err := Open(ctx, u.Dialect, u.Driver, u.DSN, &u.Options)
	if err != nil {
		return nil, err
	}
	if u.prepared != "" {
		s.pool.openPrepared = func() (*sql.DB, error) { return sql.Open(u.Driver, u.prepared) }
	}
	return s, nil
}

// URL is what a URL says about a store.
type URL struct {
	Dialect Dialect
	// Driver is a driver that the program has imported. DSN is the URL for it. It
	// contains the password.
	Driver, DSN string
	Options     Options
	// prepared is the DSN for connections that prepare statements, or empty.
	prepared string
}

var sslModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// OpenDB opens the database. The caller closes it.
func (u URL) OpenDB() (*sql.DB, error) { return sql.Open(u.Driver, u.DSN) }

// ParseURL parses a URL of the scheme postgres or postgresql, which is the driver's
// own:
//
//	postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?schema=leasehold&max_ttl=60s
//
// schema and max_ttl are those of Options. All other settings are the driver's. The
// driver is pgx, or else pq, whichever the program has imported. With pgx, poolers
// need no setting: unless the URL says how to send statements, they are prepared only
// once sessions are known to last. ParseURL
// connects to nothing. Its errors match store.ErrInvalid or store.ErrUnsupported and
// contain no password.
func ParseURL(raw string) (URL, error) {
	raw = strings.TrimSpace(raw)
	if strings.ContainsAny(raw, "\r\n") {
		return URL{}, fmt.Errorf("%w: a database is one store: give one URL, with all its hosts", store.ErrInvalid)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return URL{}, fmt.Errorf("%w: the database's URL cannot be read: in a password, write %%40 for @, %%3A for :, %%2F for / and %%25 for %%", store.ErrInvalid)
	}
	q := u.Query()
	parsed := URL{Dialect: PostgreSQL, Options: Options{Schema: q.Get("schema")}}
	if v := q.Get("max_ttl"); v != "" {
		if parsed.Options.MaxTTL, err = time.ParseDuration(v); err != nil || parsed.Options.MaxTTL <= 0 {
			return URL{}, fmt.Errorf("%w: max_ttl=%q: it is a time such as 60s", store.ErrInvalid, v)
		}
	}
	if v := q.Get("sslmode"); v != "" && !slices.Contains(sslModes, v) {
		return URL{}, fmt.Errorf("%w: sslmode=%q: it is one of %s", store.ErrInvalid, v, strings.Join(sslModes, ", "))
	}
	if _, err := parsed.Options.checked(); err != nil {
		return URL{}, err
	}
	q.Del("schema")
	q.Del("max_ttl")
	defaults := map[string]string{"connect_timeout": "5", "application_name": "leasehold"}
	const execMode = "default_query_exec_mode"
	prepares := false
	switch drivers := sql.Drivers(); {
	case slices.Contains(drivers, "pgx"):
		parsed.Driver = "pgx"
		defaults[execMode] = "exec"
		prepares = !q.Has(execMode)
	case slices.Contains(drivers, "postgres"):
		parsed.Driver = "postgres"
	default:
		return URL{}, fmt.Errorf("%w: no driver for PostgreSQL is part of this program: add import _ %q", store.ErrUnsupported, "github.com/jackc/pgx/v5/stdlib")
	}
	for name, value := range defaults {
		if !q.Has(name) {
			q.Set(name, value)
		}
	}
	with := func(q url.Values) string {
		one := *u
		one.RawQuery = q.Encode()
		return one.String()
	}
	parsed.DSN = with(q)
	if prepares {
		q.Set(execMode, "cache_statement")
		parsed.prepared = with(q)
	}
	return parsed, nil
}
