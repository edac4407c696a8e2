package sqlstore

import "net/url"

// source implements engine: the URL is the driver's own.
func (p postgresql) source(u *url.URL, settings url.Values) (driver, dsn string, err error) {
	setDefault(settings, "connect_timeout", "5")
	setDefault(settings, "application_name", "leasehold")
	switch driver = imported("pgx", "postgres"); driver {
	case "":
		return "", "", missingDriver(p, "github.com/jackc/pgx/v5/stdlib")
	case "pgx":
		setDefault(settings, "default_query_exec_mode", "exec")
	}
	with := *u
	with.RawQuery = settings.Encode()
	return driver, with.String(), nil
}
