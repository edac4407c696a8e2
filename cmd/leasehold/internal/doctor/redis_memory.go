package doctor

import (
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// memory reports what happens when a server runs out of memory.
func memory(r *report, e redisadmin.Examination) {
	each(e, func(n redisadmin.Examined) {
		s := n.Server
		switch {
		case evicts(s):
			already := ""
			if s.Evicted > 0 {
				already = " It has evicted " + count(int(s.Evicted), "key") + " since it started."
			}
			r.add(Error, "eviction", n.Node, "When its memory is full it evicts keys, including held locks and token counters (maxmemory-policy %s at %s of %s).%s", s.Eviction, size(s.Memory), size(s.MaxMemory), already)
		case full(s):
			r.add(Error, "memory-full", n.Node, "Its memory is full (%s of %s): it refuses locks.", size(s.Memory), size(s.MaxMemory))
		case s.MaxMemory > 0 && low(s.Memory, s.MaxMemory):
			r.add(Warning, "memory-low", n.Node, "Its memory is almost full (%s of %s): when it is full, it refuses locks.", size(s.Memory), size(s.MaxMemory))
		case s.MaxMemory == 0 && low(s.Memory, s.SystemMemory):
			r.add(Warning, "memory-low", n.Node, "It uses %s of the machine's %s, without a limit: the system may kill it.", size(s.Memory), size(s.SystemMemory))
		}
	})
}

// low reports whether less than a tenth is left.
func low(used, most uint64) bool { return most > 0 && used > most-most/10 }

// persistence reports what a restart of a server would lose.
func persistence(r *report, e redisadmin.Examination) {
	forgets, bad := "two owners can then hold a lock", Warning
	if several(e) {
		forgets, bad = "it is then quarantined for "+span(e.Quarantine), Info
	}
	each(e, func(n redisadmin.Examined) {
		s := n.Server
		if n.ServerErr != nil || s.Loading { // while it loads, it reports that it writes no log
			return
		}
		if s.SettingsErr != nil {
			r.add(Info, "config-forbidden", n.Node, "CONFIG GET cannot be used (%v): it is not known when the server writes to disk.", s.SettingsErr)
		}
		if e.FsyncAlways && s.SettingsErr == nil && !keepsAll(s) {
			r.add(Error, "fsync-not-always", n.Node, "The URL says fsync=always, but the server is configured differently (appendonly %s, appendfsync %s): a client whose user may not read the configuration would not notice that a restart lost leases.", yes(s.AppendOnly), s.Fsync)
		}
		if s.SaveFails {
			r.add(Warning, "persistence-failing", n.Node, "The server could not write its data to disk the last time it tried: it may soon refuse locks, and a restart loses what is not written.")
		}
		switch {
		case s.AppendOnly && s.SettingsErr != nil:
			r.add(Info, "persistence-unknown", n.Node, "The server writes a log (AOF), but how often to disk is not known: a restart may forget the leases of the last second or more; %s.", forgets)
		case s.AppendOnly && s.Fsync == "always":
		case s.AppendOnly:
			r.add(bad, "persistence-everysec", n.Node, "The server writes its log to disk once a second at most (appendfsync %s): a crash of its machine forgets the leases granted after that; %s.", s.Fsync, forgets)
		case s.SettingsErr != nil:
			r.add(bad, "persistence-unknown", n.Node, "The server writes no log (AOF), and whether it saves snapshots is not known: a restart forgets leases; %s.", forgets)
		case s.Snapshots:
			r.add(bad, "persistence-snapshots", n.Node, "The server saves a snapshot of its data now and then (RDB), and no log: a restart forgets leases granted after the last one; %s.", forgets)
		default:
			r.add(bad, "persistence-none", n.Node, "The server keeps nothing on disk: a restart forgets every lease; %s.", forgets)
		}
	})
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// restarts reports servers that may have lost leases.
func restarts(r *report, e redisadmin.Examination) {
	each(e, func(n redisadmin.Examined) {
		s := n.Server
		if n.ServerErr != nil || s.Loading {
			return
		}
		if n.Mark.Version != "" {
			r.add(bearable(e), "other-version", n.Node, "Another version of Leasehold keeps locks on the server (%v), and this one refuses to use it.", n.Mark.Err)
			return
		}
		switch {
		case !several(e):
			if s.Uptime < e.MaxTTL && !keepsAll(s) {
				r.add(Warning, "restarted-recently", n.Node, "The server was started %s ago and may have forgotten leases that were granted before: for another %s two owners can hold one lock.", span(s.Uptime), span(e.MaxTTL-s.Uptime))
			}
		case n.Mark.Err != nil:
		case n.Mark.Quarantined:
			r.add(bearable(e), "quarantined", n.Node, "The server, which was started %s ago, is in quarantine, because %s: it takes no part for another %s.", span(s.Uptime), n.Mark.Why, span(n.Mark.OpensIn))
		case !n.Mark.Found || n.Mark.RunID != s.RunID && !(n.Mark.Durable && keepsAll(s)):
			r.add(Info, "restart-unseen", n.Node, "No client has used the server since it was started or emptied (it was started %s ago). The first client that does quarantines it for up to %s, in case it has lost leases.", span(s.Uptime), span(e.Quarantine))
		}
	})
}

// keepsAll reports whether the server is known to lose nothing.
func keepsAll(s redisadmin.Server) bool { return s.AppendOnly && s.Fsync == "always" }
