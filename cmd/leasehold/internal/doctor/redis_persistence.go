package doctor

import "github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"

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
			r.add(Info, ConfigForbidden, n.Node, "CONFIG GET cannot be used (%v): it is not known when the server writes to disk.", s.SettingsErr)
		}
		if e.FsyncAlways && s.SettingsErr == nil && !keepsAll(s) {
			r.add(Error, FsyncNotAlways, n.Node, "The URL says fsync=always, but the server is configured differently (appendonly %s, appendfsync %s): a client whose user may not read the configuration would not notice that a restart lost leases.", yes(s.AppendOnly), s.Fsync)
		}
		if s.SaveFails {
			r.add(Warning, PersistenceFailing, n.Node, "The server could not write its data to disk the last time it tried: it may soon refuse locks, and a restart loses what is not written.")
		}
		switch {
		case s.AppendOnly && s.SettingsErr != nil:
			r.add(Info, PersistenceUnknown, n.Node, "The server writes a log (AOF), but how often to disk is not known: a restart may forget the leases of the last second or more; %s.", forgets)
		case s.AppendOnly && s.Fsync == "always":
		case s.AppendOnly:
			r.add(bad, PersistenceEverySec, n.Node, "The server writes its log to disk once a second at most (appendfsync %s): a crash of its machine forgets the leases granted after that; %s.", s.Fsync, forgets)
		case s.SettingsErr != nil:
			r.add(bad, PersistenceUnknown, n.Node, "The server writes no log (AOF), and whether it saves snapshots is not known: a restart forgets leases; %s.", forgets)
		case s.Snapshots:
			r.add(bad, PersistenceSnapshot, n.Node, "The server saves a snapshot of its data now and then (RDB), and no log: a restart forgets leases granted after the last one; %s.", forgets)
		default:
			r.add(bad, PersistenceNone, n.Node, "The server keeps nothing on disk: a restart forgets every lease; %s.", forgets)
		}
	})
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
