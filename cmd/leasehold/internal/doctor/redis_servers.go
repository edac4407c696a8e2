package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// reachable reports nodes that cannot be reached, and whether the others form a
// quorum.
func reachable(r *report, e redisadmin.Examination) {
	for _, l := range lacking(e, func(n redisadmin.Examined) bool { return votes(e, n) }) {
		can := 0
		for _, i := range l {
			if votes(e, e.Nodes[i]) {
				can++
			}
		}
		if several(e) {
			r.add(Error, "no-quorum", "", "Of %s%s %s, and %d are needed: no lock can be acquired now.", count(len(l), "node"), which(e, l), takePart(can), majority(l))
		}
	}
	for _, n := range e.Nodes {
		switch n.Outcome {
		case store.Granted:
			if n.Server.Loading {
				r.add(bearable(e), "node-loading", n.Node, "The server is still loading its data.")
			}
		case store.Loading:
			r.add(bearable(e), "node-loading", n.Node, "The server is still loading its data.")
		case store.Refused:
			r.add(Error, "login-refused", n.Node, "The server refuses the login: %v.", n.Err)
		case store.TimedOut:
			r.add(bearable(e), "node-silent", n.Node, "The server does not answer: %v.", n.Err)
		default:
			r.add(bearable(e), "node-unreachable", n.Node, "The server cannot be reached: %v.", store.Cause(n.Err))
		}
	}
}

func takePart(n int) string {
	switch n {
	case 0:
		return "none can take part"
	case 1:
		return "one can take part"
	}
	return count(n, "") + " can take part"
}

// which names the nodes of a list if there are two lists.
func which(e redisadmin.Examination, l []int) string {
	if len(e.Memberships) < 2 {
		return ""
	}
	var names []string
	for _, i := range l {
		names = append(names, e.Nodes[i].Node)
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// identity is about which servers they are.
func identity(r *report, e redisadmin.Examination) {
	same(e, func(n redisadmin.Examined) string { return n.Server.RunID }, func(nodes []string) {
		r.add(Error, "same-server", "", "%s are one server (run_id): its vote counts %s, so two clients can both have a majority.", list(nodes), manifold(len(nodes)))
	})
	if several(e) {
		same(e, func(n redisadmin.Examined) string { return n.Host }, func(nodes []string) {
			r.add(Warning, "same-host", "", "%s are on one machine: when it fails, %d of %d nodes do.", list(nodes), len(nodes), len(e.Nodes))
		})
	}
	for _, l := range e.Memberships {
		if n := len(l); n%2 == 0 {
			r.add(Warning, "even-nodes", "", "%d nodes%s are no safer than %d: both survive the loss of %d, and one more can fail.", n, which(e, l), n-1, n-majority(l))
		}
	}
	each(e, func(n redisadmin.Examined) {
		if n.ServerErr != nil {
			bad, but := Info, ""
			if several(e) && !e.FsyncAlways {
				bad, but = Error, " Without knowing whether it was restarted, it is not used."
			}
			r.add(bad, "info-forbidden", n.Node, "INFO cannot be read (%v), so the server's identity, role, version, memory, persistence and eviction policy are not known.%s", n.ServerErr, but)
			return
		}
		if tooOld(n.Server) {
			r.add(Error, "server-too-old", n.Node, "Version %s is too old: it cannot run the scripts that lock.", n.Server.Version)
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

// roles reports servers that are sentinels, replicas or part of a cluster.
func roles(r *report, e redisadmin.Examination) {
	each(e, func(n redisadmin.Examined) {
		s := n.Server
		switch s.Mode {
		case "sentinel":
			r.add(Error, "sentinel", n.Node, "It is a sentinel, which keeps no data and so no locks.")
			return
		case "cluster":
			bad, so := Error, "It does not work as a node."
			if votes(e, n) {
				bad, so = Warning, "As long as it is the only one, locks work."
			}
			r.add(bad, "cluster", n.Node, "It is part of a cluster, which keeps different locks on different servers, moves them, and fails over to replicas that may not know of a lock. %s", so)
		}
		if e.Sentinels != nil {
			return // see watched
		}
		if s.Replica {
			r.add(Error, "replica", n.Node, "It is a replica of %s: it refuses writes, and its vote would be its master's.", s.Master)
		} else if s.Replicas > 0 {
			r.add(Warning, "replicated", n.Node, "It has %s. One that is promoted may not know of a lock that its master granted, and grant it again.", count(s.Replicas, "replica"))
		}
	})
}

// watched reports on a master that sentinels watch, and on the sentinels.
func watched(r *report, e redisadmin.Examination) {
	if e.Sentinels == nil {
		return
	}
	each(e, func(n redisadmin.Examined) {
		switch {
		case n.Server.Replica:
			r.add(Error, "replica", n.Node, "The sentinels name it as the master, and it is a replica of %s: a failover is going on, or they do not know of one.", n.Server.Master)
		default:
			r.add(Warning, "replicated", n.Node, "Sentinels watch it, and promote a replica when it fails (it has %s). That one may not know of a lock that its master granted, and grant it again.", count(n.Server.Replicas, "replica"))
		}
	})
	var says []string
	differ, first := false, ""
	for _, s := range e.Sentinels {
		if s.Err != nil {
			r.add(Warning, "sentinel-silent", s.Sentinel, "The sentinel does not say where the master is: %v.", s.Err)
			continue
		}
		says = append(says, fmt.Sprintf("%s says %s (epoch %d)", s.Sentinel, s.Master, s.Epoch))
		differ, first = differ || first != "" && s.Master != first, s.Master
	}
	if differ {
		r.add(Warning, "sentinels-disagree", "", "The sentinels do not agree on where the master is: %s. The largest epoch counts; one that is behind is cut off from the others, unless a failover has just happened.", strings.Join(says, ", "))
	}
}

// lists reports nodes that belong to another list of nodes.
func lists(r *report, e redisadmin.Examination) {
	each(e, func(n redisadmin.Examined) {
		if n.Mark.UsedAlone != "" && several(e) {
			r.add(bearable(e), "other-list", n.Node, "The server is in use alone, by %s, and does not become one of several meanwhile: they would not exclude each other.", n.Mark.UsedAlone)
		}
		if n.Mark.Others != "" {
			now, next, both := strings.Cut(n.Mark.Others, ">")
			if both {
				now += ", which are being replaced by " + next
			}
			r.add(bearable(e), "other-list", n.Node, "The server decides together with %s, and refuses clients that have another list: they would not exclude each other.", now)
		}
	})
	if len(e.Memberships) > 1 {
		r.add(Info, "list-being-replaced", "", "One list of nodes is being replaced by another: a majority of each has to grant a lock.")
	}
}
