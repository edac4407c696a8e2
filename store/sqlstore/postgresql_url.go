package sqlstore

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

var sslModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// source implements engine: the URL is the driver's own.
func (p postgresql) source(u *url.URL, settings url.Values) (source, error) {
	if v := settings.Get("sslmode"); v != "" && !slices.Contains(sslModes, v) {
		return source{}, fmt.Errorf("%w: sslmode=%q: it is one of %s", store.ErrInvalid, v, strings.Join(sslModes, ", "))
	}
	setDefault(settings, "connect_timeout", "5")
	setDefault(settings, "application_name", "leasehold")
	const execMode = "default_query_exec_mode"
	from := source{driver: imported("pgx", "postgres")}
	switch {
	case from.driver == "":
		return source{}, missingDriver(p, "github.com/jackc/pgx/v5/stdlib")
	case from.driver == "pgx" && !settings.Has(execMode):
		settings.Set(execMode, "exec")
	}
	one := *u
	one.RawQuery = settings.Encode()
	from.dsn = one.String()
	return from, nil
}
