package cli

import (
	// The drivers of sqlstore.
	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
)

var postgresqlScheme = scheme{
	names: []string{"postgres", "postgresql"},
	usage: "postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?schema=leasehold",
	help: `A PostgreSQL database, for locks between machines. "leasehold schema" makes
their table once. Several hosts are one server and its standbys:
add target_session_attrs=read-write. Other settings are those of the driver,
pgx, such as sslmode=verify-full.`,
	single: true,
}

func init() {
	// The driver logs only what it also returns as an error.
	_ = mysql.SetLogger(&mysql.NopLogger{}) // fails for nil only
}

var mysqlScheme = scheme{
	names: []string{"mysql", "mariadb"},
	usage: "mysql://USER:PASSWORD@HOST:PORT/?schema=leasehold",
	help: `A MySQL or MariaDB server, for locks between machines. "leasehold schema" makes
a database with their table once. socket=/PATH connects to a socket.
Other settings are those of the driver, go-sql-driver/mysql, such as tls=true.`,
	single: true,
}
