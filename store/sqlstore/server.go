package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Server is what a database server says about itself.
type Server struct {
	// ServerVersion is the server's own, such as 150018 for PostgreSQL 15.18.
	ServerVersion string
	// ReadOnly is why the server can only be read, or empty: it is a standby or a
	// replica, or transactions of the role can only read.
	ReadOnly string
	// Why is what keeps the server from being crash-safe, or empty.
	Why string
	// explicit means that sessions do not commit by themselves.
	explicit bool
}

// Class returns the strongest guarantee that the server's settings allow.
func (s *Server) Class() store.Class {
	if s.Why == "" {
		return store.CrashSafe
	}
	return store.Efficiency
}

func (postgresql) examine(ctx context.Context, db *sql.DB) (is Server, err error) {
	var standby, readOnly bool
	var fsync, pages, commits, names string
	var standbys int
	// A backup and a subscriber of logical replication cannot take over.
	err = db.QueryRowContext(ctx, `SELECT current_setting('server_version_num'), pg_is_in_recovery(), current_setting('transaction_read_only')::boolean,
		current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
		(SELECT count(*) FROM pg_stat_replication r LEFT JOIN pg_replication_slots s ON s.active_pid = r.pid
			WHERE r.state IS DISTINCT FROM 'backup' AND s.slot_type IS DISTINCT FROM 'logical')`).
		Scan(&is.ServerVersion, &standby, &readOnly, &fsync, &pages, &commits, &names, &standbys)
	switch {
	case standby:
		is.ReadOnly = adviceReadOnly
	case readOnly:
		is.ReadOnly = adviceReadOnlyRole
	}
	switch {
	case fsync != "on":
		is.Why = "fsync is " + fsync + ", so a crash can lose grants"
	case pages != "on":
		is.Why = "full_page_writes is " + pages + ", so a crash can damage the table"
	case commits == "off":
		is.Why = "synchronous_commit is off, so a crash can lose grants"
	case standbys > 0 && strings.TrimSpace(names) == "":
		is.Why = "its standbys are asynchronous, so a failover can lose grants"
	case standbys > 0 && commits == "local":
		is.Why = "synchronous_commit is local, so a failover can lose grants"
	}
	return is, err
}

func (mysql) examine(ctx context.Context, db *sql.DB) (is Server, err error) {
	says := map[string]string{}
	ask := func(show string) error {
		rows, err := db.QueryContext(ctx, show)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name, value string
			if err := rows.Scan(&name, &value); err != nil {
				return err
			}
			says[strings.ToLower(name)] = value
		}
		return rows.Err()
	}
	// All users may ask for these. The answer leaves out what the server does not know.
	variables := []string{"version", "read_only", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "log_bin", "sync_binlog",
		"wsrep_on", "wsrep_provider", "group_replication_group_name", "autocommit", "transaction_read_only", "tx_read_only"}
	questions := []string{"SHOW SESSION VARIABLES WHERE Variable_name IN ('" + strings.Join(variables, "', '") + "')"}
	for _, name := range []string{"Slaves_connected", "Innodb_redo_log_enabled"} {
		questions = append(questions, "SHOW GLOBAL STATUS LIKE '"+name+"'")
	}
	for i := 0; i < len(questions); i++ {
		if err := ask(questions[i]); err != nil {
			return is, err
		}
		if i == 0 && len(says) == 1 { // sql_select_limit is 1
			for _, name := range variables {
				questions = append(questions, "SHOW SESSION VARIABLES LIKE '"+name+"'")
			}
		}
	}
	// Users see the sessions of others only with the right PROCESS.
	var replicas int
	if err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'`).Scan(&replicas); err != nil {
		return is, err
	}
	connected, _ := strconv.Atoi(says["slaves_connected"]) // MariaDB only
	is.ServerVersion, is.explicit = says["version"], says["autocommit"] == "OFF"
	if says["read_only"] != "OFF" || says["transaction_read_only"] == "ON" || says["tx_read_only"] == "ON" {
		is.ReadOnly = adviceReadOnly
	}
	cluster := ""
	switch {
	case says["wsrep_on"] == "ON" && says["wsrep_provider"] != "none":
		cluster = "Galera"
	case says["group_replication_group_name"] != "":
		cluster = "Group Replication"
	}
	switch {
	case says["innodb_flush_log_at_trx_commit"] != "1":
		is.Why = "innodb_flush_log_at_trx_commit is " + says["innodb_flush_log_at_trx_commit"] + ", so a crash can lose grants"
	case says["innodb_redo_log_enabled"] == "OFF":
		is.Why = "the redo log is disabled, so a crash can damage the table"
	case says["innodb_doublewrite"] == "OFF", says["innodb_doublewrite"] == "DETECT_ONLY":
		is.Why = "innodb_doublewrite is " + says["innodb_doublewrite"] + ", so a crash can damage the table"
	case says["log_bin"] == "ON" && says["sync_binlog"] != "1":
		is.Why = "sync_binlog is " + says["sync_binlog"] + ", so a crash can lose grants"
	case cluster != "":
		is.Why = "it is part of a cluster (" + cluster + "), whose nodes have clocks of their own, and where a failover can lose grants"
	case replicas > 0 || connected > 0:
		is.Why = "its replicas do not have each grant before it counts, so a failover can lose grants"
	}
	return is, nil
}

// examine asks the server about itself.
func (r *records) examine(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	is, err := r.engine.examine(ctx, r.db)
	if err != nil {
		return r.explain(err, true)
	}
	r.asked.Store(int64(r.clock.Now()))
	r.server.Store(&is)
	return nil
}

// examineAgain asks the server about itself in the background, once a minute: its standbys come
// and go.
func (r *records) examineAgain() {
	now, last := int64(r.clock.Now()), r.asked.Load()
	if now-last < int64(time.Minute) || !r.asked.CompareAndSwap(last, now) {
		return
	}
	r.spawn(func(ctx context.Context) {
		if err := r.examine(ctx); err != nil && ctx.Err() == nil {
			r.o.Logger.Warn("cannot examine the database server", "err", err)
		}
	})
}

// spawn runs f in the background until the store is closed.
func (r *records) spawn(f func(ctx context.Context)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop.Err() == nil {
		r.background.Go(func() { f(r.stop) })
	}
}

// open checks that the table is there and can be used.
func (r *records) open(ctx context.Context) error {
	if err := r.examine(ctx); err != nil {
		return err
	}
	is := r.server.Load()
	if is.ReadOnly != "" {
		return errors.New(is.ReadOnly)
	}
	r.explicit = is.explicit
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	_, err := r.Read(ctx, "")
	return err
}

// Examination is what Examine found out.
type Examination struct {
	Server
	// Node is the server, as errors name it.
	Node string
	// Unusable is why no lock can be acquired, or nil.
	Unusable error
	// Known reports whether the server has answered, so that Server is set.
	Known bool
	// Polled is why waiters poll although the database could wake them, or empty.
	Polled string
	// Took is the time of an acquire and a release, if they were tried.
	Took time.Duration
}

// Examine checks whether a store can be opened, as by Open, and a lock acquired in it, and asks
// the server about itself. It tries this on a name of its own. It blocks as Open and
// Acquire do. The error is about the URL and the options; what is wrong with the server is in the
// result.
func Examine(ctx context.Context, url string, o *Options) (Examination, error) {
	var e Examination
	u, c, err := parse(url, o)
	if err != nil {
		return e, err
	}
	db, err := u.OpenDB()
	if err != nil {
		return e, err
	}
	defer db.Close()
	r, err := newRecords(db, false, u.Dialect, &c)
	if err != nil {
		return e, err
	}
	s := recordstore.New(r, &recordstore.Options{Timeout: r.o.Timeout})
	defer s.Close()
	e.Node = r.engine.name()
	e.Unusable = r.open(ctx)
	if is := r.server.Load(); is != nil {
		e.Server, e.Known = *is, true
	}
	if e.Unusable != nil {
		return e, nil
	}
	if r.bells != nil {
		e.Polled = r.bells.why(ctx)
	}
	l := store.Lease{Name: "doctor/" + store.NewOwner(), Owner: store.NewOwner(), TTL: r.o.Timeout}
	sent := r.clock.Now()
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: l}); err != nil {
		e.Unusable = err
		return e, nil
	}
	e.Unusable = s.Release(ctx, store.ReleaseRequest{Lease: l})
	e.Took = r.clock.Now().Sub(sent)
	return e, nil
}

// failedOpen shapes the error of Open.
func (r *records) failedOpen(err error) error {
	n := store.NodeOutcome{Node: r.engine.name(), Outcome: store.Unreachable, Err: err}
	if address, cause, ok := addressOf(err.Error()); ok {
		n.Node, n.Err = address, said{cause, err}
	}
	switch {
	case r.server.Load() != nil && r.server.Load().ReadOnly != "":
		n.Outcome = store.Unsettled
	case errors.Is(err, recordstore.ErrRefused):
		n.Outcome = store.Refused
	case errors.Is(err, context.DeadlineExceeded):
		n.Outcome = store.TimedOut
	}
	return &store.QuorumError{Op: "open", Store: r.engine.name(), Need: 1, Nodes: []store.NodeOutcome{n}}
}
