package sqlstore

import (
	"strconv"
	"strings"
)

// MySQLSettings are the settings of a MySQL or MariaDB that decide what survives. They
// have the names and values of the server's variables.
type MySQLSettings struct {
	InnodbFlushLogAtTrxCommit, InnodbDoublewrite, LogBin, SyncBinlog string
	// InnodbRedoLogEnabled is empty in MariaDB, whose log cannot be disabled.
	InnodbRedoLogEnabled string
	// Cluster is Galera or Group Replication if the server is part of one, and
	// otherwise empty.
	Cluster string
	// Replicas is the number of replicas that are connected, as far as the server
	// tells it.
	Replicas int
}

// why implements Settings.
func (s MySQLSettings) why() string {
	switch {
	case s.InnodbFlushLogAtTrxCommit != "1":
		return "innodb_flush_log_at_trx_commit is " + s.InnodbFlushLogAtTrxCommit + ", so a crash can lose grants"
	case s.InnodbRedoLogEnabled == "OFF":
		return "the redo log is disabled, so a crash can damage the tables"
	case s.InnodbDoublewrite == "OFF", s.InnodbDoublewrite == "DETECT_ONLY":
		return "innodb_doublewrite is " + s.InnodbDoublewrite + ", so a crash can damage the tables"
	case s.LogBin == "ON" && s.SyncBinlog != "1":
		return "sync_binlog is " + s.SyncBinlog + ", so a crash can lose grants"
	case s.Cluster != "":
		return "it is part of a cluster (" + s.Cluster + "), whose nodes have clocks of their own, and where a failover can lose grants"
	case s.Replicas > 0:
		return "its replicas do not have each grant before it counts, so a failover can lose grants"
	}
	return ""
}

// polled implements Settings.
func (s MySQLSettings) polled() string {
	if s.Cluster != "" {
		return "the nodes of a cluster do not see each other's sessions"
	}
	return ""
}

func (m mysql) examine(schema string, query func(s statement, each func(row) error) error) (is Server, at int64, err error) {
	says := map[string]string{}
	for _, show := range []string{
		// All users may ask for these. The answer leaves out what the server does not know.
		`SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'read_only', 'innodb_flush_log_at_trx_commit', 'innodb_doublewrite',
			'log_bin', 'sync_binlog', 'wsrep_on', 'wsrep_provider', 'group_replication_group_name')`,
		`SHOW GLOBAL STATUS WHERE Variable_name IN ('Slaves_connected', 'Innodb_redo_log_enabled')`,
	} {
		err := query(plain(show), func(r row) error {
			var name, value string
			err := r.Scan(&name, &value)
			says[strings.ToLower(name)] = value
			return err
		})
		if err != nil {
			return is, 0, err
		}
	}
	has := MySQLSettings{
		InnodbFlushLogAtTrxCommit: says["innodb_flush_log_at_trx_commit"],
		InnodbDoublewrite:         says["innodb_doublewrite"],
		LogBin:                    says["log_bin"],
		SyncBinlog:                says["sync_binlog"],
		InnodbRedoLogEnabled:      says["innodb_redo_log_enabled"],
	}
	switch {
	case says["wsrep_on"] == "ON" && says["wsrep_provider"] != "none":
		has.Cluster = "Galera"
	case says["group_replication_group_name"] != "":
		has.Cluster = "Group Replication"
	}
	is.ServerVersion = says["version"]
	if says["read_only"] != "OFF" {
		is.ReadOnly = adviceReplica
	}
	connected, _ := strconv.Atoi(says["slaves_connected"]) // MariaDB only
	err = query(m.procedure(schema, "server", "", 0), func(r row) error {
		return r.Scan(&is.Version, &is.Oldest, &has.Replicas, &at)
	})
	has.Replicas = max(has.Replicas, connected)
	is.Settings = has
	return is, at, err
}
