package doctor

import (
	"slices"

	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// identity is about which servers they are.
func identity(r *report, e redisadmin.Examination) {
	same(e, func(n redisadmin.Examined) string { return n.Server.RunID }, func(nodes []string) {
		r.add(Error, SameServer, "", "%s are one server (run_id): its vote counts %s, so two clients can both have a majority.", list(nodes), manifold(len(nodes)))
	})
	if several(e) {
		same(e, func(n redisadmin.Examined) string { return n.Host }, func(nodes []string) {
			r.add(Warning, SameHost, "", "%s are on one machine: when it fails, %d of %d nodes do.", list(nodes), len(nodes), len(e.Nodes))
		})
	}
	for _, l := range e.Memberships {
		if n := len(l); n%2 == 0 {
			r.add(Warning, EvenNodes, "", "%d nodes%s are no safer than %d: both survive the loss of %d, and one more can fail.", n, which(e, l), n-1, n-majority(l))
		}
	}
	each(e, func(n redisadmin.Examined) {
		if n.ServerErr != nil {
			bad, but := Info, ""
			if several(e) && !e.FsyncAlways {
				bad, but = Error, " Without knowing whether it was restarted, it is not used."
			}
			r.add(bad, InfoForbidden, n.Node, "INFO cannot be read (%v), so the server's identity, role, version, memory, persistence and eviction policy are not known.%s", n.ServerErr, but)
			return
		}
		if tooOld(n.Server) {
			r.add(Error, ServerTooOld, n.Node, "Version %s is too old: it cannot run the scripts that lock.", n.Server.Version)
		}
	})
}

// same calls fn with the nodes that have a value in common, for each such value.
func same(e redisadmin.Examination, value func(redisadmin.Examined) string, fn func(nodes []string)) {
	by := map[string][]string{}
	var order []string
	each(e, func(n redisadmin.Examined) {
		if v := value(n); v != "" {
			if by[v] == nil {
				order = append(order, v)
			}
			by[v] = append(by[v], n.Node)
		}
	})
	for _, v := range order {
		if nodes := slices.Compact(by[v]); len(nodes) > 1 {
			fn(nodes)
		}
	}
}
