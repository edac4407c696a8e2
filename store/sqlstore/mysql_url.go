package sqlstore

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// source implements engine: it writes the URL in the format of go-sql-driver/mysql.
func (m mysql) source(u *url.URL, settings url.Values) (source, error) {
	driver := imported("mysql")
	if driver == "" {
		return source{}, missingDriver(m, "github.com/go-sql-driver/mysql")
	}
	user := u.User.Username()
	password, ok := u.User.Password()
	if !ok {
		password = os.Getenv("MYSQL_PWD")
	}
	address := "tcp(" + net.JoinHostPort(cmp.Or(u.Hostname(), "127.0.0.1"), cmp.Or(u.Port(), "3306")) + ")"
	if socket := settings.Get("socket"); socket != "" {
		address = "unix(" + socket + ")"
		settings.Del("socket")
	}
	switch {
	case strings.ContainsAny(u.Host, ","):
		return source{}, fmt.Errorf("%w: give one host: a MySQL store has one server, or a name that leads to the primary", store.ErrInvalid)
	case strings.ContainsRune(user, ':'):
		return source{}, fmt.Errorf("%w: the driver cannot log in a user whose name contains a colon", store.ErrInvalid)
	}
	setDefault(settings, "timeout", "5s")
	setDefault(settings, "tls", "preferred")
	setDefault(settings, "connectionAttributes", "program_name:leasehold")
	// A call whose client is gone should not wait for long.
	setDefault(settings, "innodb_lock_wait_timeout", "2")
	dsn := user + ":" + password + "@" + address + "/" + url.PathEscape(strings.TrimPrefix(u.Path, "/")) + "?" + settings.Encode()
	return source{driver: driver, dsn: dsn}, nil
}
