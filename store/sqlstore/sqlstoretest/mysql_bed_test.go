package sqlstoretest

import (
	"strings"

	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
)

// mysql is MySQL itself. It differs from MariaDB in its variables and in how it shows its sessions.
var mysql = func() *bed {
	on := *mariadb
	on.name = "MySQL"
	on.launch = sqltest.LaunchMySQL
	on.quick = []string{"max-connections=500", "innodb-flush-method=nosync"}
	on.durable = []string{"innodb-flush-log-at-trx-commit=1", "sync-binlog=1"}
	on.program = sqltest.MySQLClient
	on.limits = []string{"max_execution_time=500", "wait_timeout=1"}
	// The other table of sessions cannot be read while a statement is not valid UTF-8.
	on.holding = strings.ReplaceAll(on.holding, "information_schema.PROCESSLIST", "performance_schema.processlist")
	on.kill = killIn("performance_schema.processlist")
	on.lossy = map[string]string{
		"SET GLOBAL innodb_doublewrite = DETECT_ONLY": "SET GLOBAL innodb_doublewrite = DETECT_AND_RECOVER",
		"ALTER INSTANCE DISABLE INNODB REDO_LOG":      "ALTER INSTANCE ENABLE INNODB REDO_LOG",
	}
	on.isolation, on.readOnly = "transaction_isolation", "transaction_read_only"
	return &on
}()
