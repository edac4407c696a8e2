package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// dialects are the dialects of the schemes.
var dialects = map[string]Dialect{"postgres": PostgreSQL, "postgresql": PostgreSQL, "mysql": MySQL, "mariadb": MySQL}

func init() {
	for scheme := range dialects {
		store.Register(scheme, func(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
			return Open(ctx, url, &Options{Logger: o.Logger})
		})
	}
}

// URL is what a URL says about a store: it is for administrators, who need the handle of the
// database for Install.
type URL struct {
	Dialect Dialect
	// Driver is a driver that the program has imported. DSN is what it connects to.
	// It contains the password.
	Driver, DSN string
	Options     Options
}

// OpenDB opens the database. The caller closes it.
func (u URL) OpenDB() (*sql.DB, error) { return sql.Open(u.Driver, u.DSN) }

// ParseURL parses a URL of the scheme postgres, postgresql, mysql or mariadb:
//
//	postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?schema=leasehold
//	mysql://USER:PASSWORD@HOST:PORT/DATABASE?schema=leasehold
//
// schema and max_ttl are those of Options. All other settings are the driver's. The
// driver is one that the program has imported: for PostgreSQL pgx, or else pq, and for
// MySQL go-sql-driver/mysql. With pgx, poolers need no setting: unless the URL says how
// to send statements, they are prepared only once sessions are known to last. For
// PostgreSQL, host=DIRECTORY connects to the socket in a directory. For MySQL,
// socket=PATH connects to a socket, and the database need not be named. A URL for MySQL
// without a password takes it from MYSQL_PWD.
//
// ParseURL connects to nothing. Its errors match store.ErrInvalid or
// store.ErrUnsupported and contain no password.
func ParseURL(raw string) (URL, error) {
	raw = strings.TrimSpace(raw)
	if strings.ContainsAny(raw, "\r\n") {
		return URL{}, fmt.Errorf("%w: a database is one store: give one URL, with all its hosts", store.ErrInvalid)
	}
	u, err := url.Parse(raw)
	if e, ok := errors.AsType[url.EscapeError](err); ok && strings.EqualFold(string(e), "%2F") { // not in a password
		return URL{}, fmt.Errorf("%w: the host in the database's URL is a path: name the directory of a PostgreSQL socket with ?host=/run/postgresql, and a MySQL socket with ?socket=/run/mysqld/mysqld.sock", store.ErrInvalid)
	}
	if err != nil {
		return URL{}, fmt.Errorf("%w: the database's URL cannot be read: in a password, write %%40 for @, %%3A for :, %%2F for / and %%25 for %%", store.ErrInvalid)
	}
	q := u.Query()
	parsed := URL{Dialect: dialects[u.Scheme], Options: Options{Schema: q.Get("schema")}}
	e, err := parsed.Dialect.engine()
	if err != nil {
		return URL{}, fmt.Errorf("%w: the scheme of the database's URL: use postgres or mysql", store.ErrInvalid)
	}
	if v := q.Get("max_ttl"); v != "" {
		if parsed.Options.MaxTTL, err = time.ParseDuration(v); err != nil || parsed.Options.MaxTTL <= 0 {
			return URL{}, fmt.Errorf("%w: max_ttl=%q: it is a time such as 60s", store.ErrInvalid, v)
		}
	}
	if _, err := parsed.Options.checked(); err != nil {
		return URL{}, err
	}
	q.Del("schema")
	q.Del("max_ttl")
	from, err := e.source(u, q)
	parsed.Driver, parsed.DSN = from.driver, from.dsn
	return parsed, err
}
