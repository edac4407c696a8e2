package doctor

import "github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"

// roles reports servers that are sentinels, replicas or part of a cluster.
func roles(r *report, e redisadmin.Examination) {
	each(e, func(n redisadmin.Examined) {
		s := n.Server
		switch s.Mode {
		case "sentinel":
			r.add(Error, Sentinel, n.Node, "It is a sentinel, which keeps no data and so no locks.")
			return
		case "cluster":
			bad, so := Error, "It does not work as a node."
			if votes(e, n) {
				bad, so = Warning, "As long as it is the only one, locks work."
			}
			r.add(bad, Cluster, n.Node, "It is part of a cluster, which keeps different locks on different servers, moves them, and fails over to replicas that may not know of a lock. %s", so)
		}
		if e.Sentinels != nil {
			return // see watched
		}
		if s.Replica {
			r.add(Error, Replica, n.Node, "It is a replica of %s: it refuses writes, and its vote would be its master's.", s.Master)
		} else if s.Replicas > 0 {
			r.add(Warning, Replicated, n.Node, "It has %s. One that is promoted may not know of a lock that its master granted, and grant it again.", count(s.Replicas, "replica"))
		}
	})
}
