package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

var postgresqlScheme = scheme{
	names: []string{"postgres", "postgresql"},
	usage: "postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?schema=leasehold&max_ttl=60s",
	help: `A PostgreSQL database, for locks between machines. "leasehold schema" installs
the tables and procedures once. Several hosts are one server and its standbys:
add target_session_attrs=read-write. Other settings are those of the driver,
pgx, such as sslmode=verify-full.`,
	open: func(ctx context.Context, urls []string, log *slog.Logger) (store.Store, error) {
		d, err := databaseOf(urls)
		if err != nil {
			return nil, err
		}
		d.options.Logger = log
		return sqlstore.Open(ctx, sqlstore.PostgreSQL, "pgx", d.dsn, &d.options)
	},
}

// databaseURL is what a postgres:// URL says.
type databaseURL struct {
	dsn     string // for the driver
	options sqlstore.Options
}

// databaseOf takes the settings of the store out of a URL, and adds defaults of ours
// to those of the driver. Its errors contain no credentials.
func databaseOf(urls []string) (databaseURL, error) {
	if len(urls) != 1 {
		return databaseURL{}, errors.New("a database is one store: give one URL, with all its hosts")
	}
	u, err := url.Parse(urls[0])
	if err != nil {
		return databaseURL{}, errors.New("the database's URL cannot be read: in a password, write %40 for @, %3A for :, %2F for / and %25 for %")
	}
	q := u.Query()
	d := databaseURL{options: sqlstore.Options{Schema: q.Get("schema")}}
	if v := q.Get("max_ttl"); v != "" {
		if d.options.MaxTTL, err = time.ParseDuration(v); err != nil || d.options.MaxTTL <= 0 {
			return databaseURL{}, fmt.Errorf("max_ttl=%s: it is a time such as 60s", safe(v))
		}
	}
	q.Del("schema")
	q.Del("max_ttl")
	for name, value := range map[string]string{
		"application_name": "leasehold",
		"connect_timeout":  "5",
		// Poolers forget prepared statements.
		"default_query_exec_mode": "exec",
	} {
		if !q.Has(name) {
			q.Set(name, value)
		}
	}
	u.RawQuery = q.Encode()
	d.dsn = u.String()
	return d, nil
}

// openDatabase returns a handle for the driver.
func openDatabase(d databaseURL) (*sql.DB, error) { return sql.Open("pgx", d.dsn) }
