package doctor

import (
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
			r.add(Error, NoQuorum, "", "Of %s%s %s, and %d are needed: no lock can be acquired now.", count(len(l), "node"), which(e, l), takePart(can), majority(l))
		}
	}
	for _, n := range e.Nodes {
		switch n.Outcome {
		case store.Granted:
			if n.Server.Loading {
				r.add(bearable(e), NodeLoading, n.Node, "The server is still loading its data.")
			}
		case store.Loading:
			r.add(bearable(e), NodeLoading, n.Node, "The server is still loading its data.")
		case store.Refused:
			r.add(Error, LoginRefused, n.Node, "The server refuses the login: %v.", n.Err)
		case store.TimedOut:
			r.add(bearable(e), NodeSilent, n.Node, "The server does not answer: %v.", n.Err)
		default:
			r.add(bearable(e), NodeUnreachable, n.Node, "The server cannot be reached: %v.", store.Cause(n.Err))
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
