package redisadmin

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// server reads what the server reports about itself, and its configuration.
func (d *examiner) server() error {
	info, err := d.askFor("INFO")
	if err != nil {
		return err
	}
	if info.Kind == '-' {
		d.found.ServerErr = resp.ErrorOf(info)
		return nil
	}
	s := parseServer(string(info.Text))
	said, err := d.ask(resp.Command("CONFIG", "GET", "appendfsync"), resp.Command("CONFIG", "GET", "no-appendfsync-on-rewrite"), resp.Command("CONFIG", "GET", "save"))
	if err != nil {
		return err
	}
	var is [3]string
	for i := range is {
		if is[i], err = setting(said[i]); err != nil {
			s.SettingsErr = err
		}
	}
	s.Fsync, s.Snapshots = is[0], is[2] != ""
	if is[1] == "yes" {
		s.Fsync += ", no-appendfsync-on-rewrite yes"
	}
	d.found.Server = s
	return nil
}

// setting reads the reply to CONFIG GET for one setting.
func setting(v resp.Value) (string, error) {
	switch {
	case v.Kind == '-':
		return "", resp.ErrorOf(v)
	case len(v.List) != 2:
		return "", resp.Unexpected(v)
	}
	return string(v.List[1].Text), nil
}

// parseServer reads the reply to INFO. Every server version leaves out some fields.
func parseServer(info string) Server {
	is := map[string]string{}
	for l := range strings.Lines(info) {
		if k, v, ok := strings.Cut(strings.TrimSpace(l), ":"); ok {
			is[k] = v
		}
	}
	number := func(key string) uint64 {
		n, err := strconv.ParseUint(is[key], 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	s := Server{
		Version: is["redis_version"], RunID: is["run_id"], Mode: is["redis_mode"],
		Uptime: time.Duration(number("uptime_in_seconds")) * time.Second, Loading: is["loading"] == "1",
		Replica: is["role"] != "" && is["role"] != "master", Replicas: int(number("connected_slaves")),
		Memory: number("used_memory"), MaxMemory: number("maxmemory"), SystemMemory: number("total_system_memory"),
		Eviction: is["maxmemory_policy"], Evicted: number("evicted_keys"),
		AppendOnly: is["aof_enabled"] == "1",
		SaveFails:  is["rdb_last_bgsave_status"] == "err" || is["aof_last_write_status"] == "err",
	}
	if s.Replica {
		s.Master = net.JoinHostPort(is["master_host"], is["master_port"])
	}
	return s
}

// mark reads the mark, which says whether the node may grant locks.
func (d *examiner) mark() error {
	if d.scope.serves != nil { // a cluster has no marks
		return nil
	}
	said, err := d.ask(resp.Command("GET", script.MarkKey), resp.Command("TIME"), resp.Command("GET", script.AloneKey))
	if err != nil {
		return err
	}
	now, _ := readTime(said[1])
	d.found.Mark = d.readMark(said[0], now)
	if alone := said[2]; alone.Kind == '$' && !alone.Null && !d.found.Mark.ours {
		d.found.Mark.UsedAlone = store.Excerpt(string(alone.Text))
	}
	return nil
}

// readMark converts the mark into its exported form. The argument now is the server's
// clock.
func (x *examination) readMark(v resp.Value, now time.Time) Mark {
	switch {
	case v.Kind == '-':
		return Mark{Err: resp.ErrorOf(v)}
	case v.Null:
		return Mark{}
	}
	m, err := nodemark.Parse(string(v.Text))
	if other := (*nodemark.VersionError)(nil); errors.As(err, &other) {
		return Mark{Err: err, Version: other.Version}
	}
	found := Mark{Found: true, RunID: m.Run, Why: script.ReasonOf(m.Why), Durable: m.Durable > 0}
	if !m.Open {
		found.OpensIn = max(time.UnixMicro(m.Opens).Sub(now), time.UnixMicro(m.ClientOpens).Sub(x.wall()), 0)
		found.Quarantined = true
	}
	found.Others, _ = x.membership.Others(m)
	found.ours = m.Print != nodemark.Unknown && !x.membership.Excluded(m.Print)
	return found
}
