package doctor

import "github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"

// restarts reports servers that may have lost leases.
func restarts(r *report, e redisadmin.Examination) {
	each(e, func(n redisadmin.Examined) {
		s := n.Server
		if n.ServerErr != nil || s.Loading {
			return
		}
		if n.Mark.Version != "" {
			r.add(bearable(e), OtherVersion, n.Node, "Another version of Leasehold keeps locks on the server (%v), and this one refuses to use it.", n.Mark.Err)
			return
		}
		switch {
		case !several(e):
			if s.Uptime < e.MaxTTL && !keepsAll(s) {
				r.add(Warning, RestartedRecently, n.Node, "The server was started %s ago and may have forgotten leases that were granted before: for another %s two owners can hold one lock.", span(s.Uptime), span(e.MaxTTL-s.Uptime))
			}
		case n.Mark.Err != nil:
		case n.Mark.Quarantined:
			r.add(bearable(e), Quarantined, n.Node, "The server, which was started %s ago, is in quarantine, because %s: it takes no part for another %s.", span(s.Uptime), n.Mark.Why, span(n.Mark.OpensIn))
		case !n.Mark.Found || n.Mark.RunID != s.RunID && !(n.Mark.Durable && keepsAll(s)):
			r.add(Info, RestartUnseen, n.Node, "No client has used the server since it was started or emptied (it was started %s ago). The first client that does quarantines it for up to %s, in case it has lost leases.", span(s.Uptime), span(e.Quarantine))
		}
	})
}

// keepsAll reports whether the server is known to lose nothing.
func keepsAll(s redisadmin.Server) bool { return s.AppendOnly && s.Fsync == "always" }
