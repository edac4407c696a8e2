package doctor

import (
	"errors"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// RedisCluster is what the examination of a cluster leads to: the findings of each master
// as a single server, without those that a cluster is expected to have.
func RedisCluster(e redisadmin.ClusterExamination) []Finding {
	r := &report{}
	for _, n := range e.Seeds {
		seed(r, n)
	}
	if len(e.Masters) > 0 && e.Unserved > 0 {
		r.add(Error, SlotsUnserved, "", "%d of %d slots have no server: locks whose names fall there cannot be taken.", e.Unserved, redisadmin.SlotsOfCluster)
	}
	for _, master := range e.Masters {
		if master.Nodes[0].Server.Mode == "cluster" {
			master.Nodes[0].Server.Mode = "standalone"
		}
		r.findings = append(r.findings, Redis(master)...)
	}
	return r.sorted()
}

// seed is about a server that did not say who the others are.
func seed(r *report, n store.NodeOutcome) {
	switch n.Outcome {
	case store.Refused:
		if errors.Is(n.Err, redisadmin.ErrNoCluster) {
			r.add(Error, NoCluster, n.Node, "The server is in no cluster: cluster support is disabled.")
			return
		}
		r.add(Error, LoginRefused, n.Node, "The server does not say which servers the cluster has: %v.", n.Err)
	case store.TimedOut:
		r.add(Error, NodeSilent, n.Node, "The server does not answer: %v.", n.Err)
	case store.Loading:
		r.add(Error, NodeLoading, n.Node, "The server is still loading its data.")
	default:
		r.add(Error, NodeUnreachable, n.Node, "The server cannot be reached: %v.", store.Cause(n.Err))
	}
}
