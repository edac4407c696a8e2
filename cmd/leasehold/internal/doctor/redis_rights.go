package doctor

import "github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"

// rights reports which rights the user of the URL lacks, as far as that was
// tried.
func rights(r *report, e redisadmin.Examination) {
	each(e, func(n redisadmin.Examined) {
		for _, l := range n.Lacking {
			if l.Key != "" {
				r.add(Error, KeyForbidden, n.Node, "The user may not use keys like %s, without which it cannot lock (%s).", l.Key, l.Says)
			} else {
				r.add(Error, RightMissing, n.Node, "The user lacks +%s, without which it cannot lock (%s).", l.Command, l.Says)
			}
		}
		if s := n.Server; s.Replica || s.Loading || s.Mode == "cluster" || s.Mode == "sentinel" || full(s) {
			return // reason enough
		}
		if n.PushErr != nil && len(n.Lacking) == 0 {
			r.add(Warning, WaitersPoll, n.Node, "Waiters cannot be notified when a lock is free, and poll instead (%v).", n.PushErr)
		}
		if n.TrackingErr != nil && len(n.Lacking) == 0 {
			bad, which := Warning, ""
			if !several(e) {
				bad, which = Info, ", and locks that require crash-safe can have two owners until then"
			}
			r.add(bad, ReplacementUnseen, n.Node, "If the server's data is replaced by that of another server (REPLICAOF), a client notices it only when it next connects (%v)%s.", n.TrackingErr, which)
		}
		for _, f := range n.Failing {
			r.add(Error, ScriptFails, n.Node, "The script %q fails on a lock that nobody uses: %v.", f.Script, f.Err)
		}
	})
}
