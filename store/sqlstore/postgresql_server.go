package sqlstore

import (
	"strings"
)

// PostgreSQLSettings are the settings of a PostgreSQL that decide what survives.
type PostgreSQLSettings struct {
	Fsync, SynchronousCommit, FullPageWrites, SynchronousStandbyNames string
	// Standbys is the number of servers that copy this one and could take its place.
	Standbys int
}

// why implements Settings. Commits that are not on disk by default do not matter: the
// store asks for it if a lock requires more than efficiency.
func (s PostgreSQLSettings) why() string {
	switch {
	case s.Fsync != "on":
		return "fsync is " + s.Fsync + ", so a crash can lose grants"
	case s.FullPageWrites != "on":
		return "full_page_writes is " + s.FullPageWrites + ", so a crash can damage the tables"
	case s.Standbys > 0 && strings.TrimSpace(s.SynchronousStandbyNames) == "":
		return "its standbys are asynchronous, so a failover can lose grants"
	case s.Standbys > 0 && s.SynchronousCommit == "local":
		return "synchronous_commit is local, so a failover can lose grants"
	}
	return ""
}

// polled implements Settings.
func (PostgreSQLSettings) polled() string { return "" }

func (p postgresql) examine(schema string, query func(s statement, each func(row) error) error) (is Server, at int64, err error) {
	var has PostgreSQLSettings
	var standby, readOnly bool
	const columns = "version, oldest, server_version, in_recovery, fsync, synchronous_commit, full_page_writes, synchronous_standby_names, standbys, pg_catalog.current_setting('transaction_read_only')::boolean, at"
	err = query(p.procedure(schema, "server", columns, 0), func(r row) error {
		return r.Scan(&is.Version, &is.Oldest, &is.ServerVersion, &standby, &has.Fsync, &has.SynchronousCommit,
			&has.FullPageWrites, &has.SynchronousStandbyNames, &has.Standbys, &readOnly, &at)
	})
	is.Settings = has
	switch {
	case standby:
		is.ReadOnly = adviceStandby
	case readOnly:
		is.ReadOnly = adviceReadOnlyRole
	}
	return is, at, err
}
