package simredis

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// section is a part of the reply of INFO.
type section struct {
	name string
	said func(*Server) string
}

var sections = []section{
	{"Server", func(s *Server) string {
		return fmt.Sprintf("redis_version:7.0.15\r\nredis_mode:standalone\r\nprocess_id:1\r\nrun_id:%s\r\nserver_time_usec:%d\r\nuptime_in_seconds:%d\r\n",
			s.runID, s.keys.now.UnixMicro(), int64(s.uptime()/time.Second))
	}},
	{"Memory", func(s *Server) string {
		return fmt.Sprintf("maxmemory:%s\r\nmaxmemory_policy:%s\r\n", s.Config["maxmemory"], s.Config["maxmemory-policy"])
	}},
	{"Persistence", func(s *Server) string {
		return fmt.Sprintf("loading:%d\r\naof_enabled:%d\r\n", truth(s.Trouble == "LOADING"), truth(s.Config["appendonly"] == "yes"))
	}},
	{"Replication", func(s *Server) string {
		return fmt.Sprintf("role:%s\r\nconnected_slaves:0\r\nmaster_replid:%s\r\nmaster_replid2:%s\r\nmaster_repl_offset:0\r\n", s.part(), s.replid, s.replid2)
	}},
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *Server) part() string {
	if s.replica {
		return "slave"
	}
	return "master"
}

func (s *Server) info(names []string) reply {
	var b strings.Builder
	for _, x := range sections {
		if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, x.name) || strings.EqualFold(n, "all") }) {
			fmt.Fprintf(&b, "# %s\r\n%s\r\n", x.name, x.said(s))
		}
	}
	return bulk(b.String())
}

func (s *Server) role([]string) reply {
	if s.replica {
		return array(bulk("slave"), bulk("elsewhere"), number(6379), bulk("connected"), number(0))
	}
	return array(bulk("master"), number(0), array())
}

func (s *Server) config(a []string) reply {
	if !strings.EqualFold(a[0], "GET") {
		return failure("ERR unknown subcommand '" + a[0] + "'")
	}
	var names []string
	for name := range s.Config {
		if slices.ContainsFunc(a[1:], func(pattern string) bool {
			ok, err := path.Match(strings.ToLower(pattern), name)
			return ok && err == nil
		}) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	r := reply{kind: '%'}
	for _, n := range names {
		r.list = append(r.list, bulk(n), bulk(s.Config[n]))
	}
	return r
}

// uptime returns how long the server has run by its wall clock, which may step.
func (s *Server) uptime() time.Duration {
	return time.Duration(s.keys.now.Unix()-s.started) * time.Second
}
