package cli

import (
	_ "github.com/jackc/pgx/v5/stdlib" // the driver of sqlstore
)

var postgresqlScheme = scheme{
	names: []string{"postgres", "postgresql"},
	usage: "postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?schema=leasehold&max_ttl=60s",
	help: `A PostgreSQL database, for locks between machines. "leasehold schema" installs
the tables and procedures once. Several hosts are one server and its standbys:
add target_session_attrs=read-write. Other settings are those of the driver,
pgx, such as sslmode=verify-full.`,
	single: true,
}
