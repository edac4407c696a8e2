package doctor

import (
	"errors"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// Redis is what the examination of Redis servers leads to.
func Redis(e redisadmin.Examination) []Finding {
	r := &report{several: several(e)}
	reachable(r, e)
	identity(r, e)
	roles(r, e)
	watched(r, e)
	memory(r, e)
	rights(r, e)
	times(r, e)
	clocks(r, e)
	lists(r, e)
	restarts(r, e)
	persistence(r, e)
	keys(r, e)
	return r.sorted()
}

// RedisCluster is what the examination of a cluster leads to: the findings of each master
// as a single server, without those that a cluster is expected to have.
func RedisCluster(e redisadmin.ClusterExamination) []Finding {
	r := &report{}
	for _, n := range e.Seeds {
		seed(r, n)
	}
	if len(e.Masters) > 0 && e.Unserved > 0 {
		r.add(Error, "slots-unserved", "", "%d of %d slots have no server: locks whose names fall there cannot be taken.", e.Unserved, redisadmin.SlotsOfCluster)
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
			r.add(Error, "no-cluster", n.Node, "No cluster can be found through the server: %v.", n.Err)
			return
		}
		r.add(Error, "login-refused", n.Node, "The server does not say which servers the cluster has: %v.", n.Err)
	case store.TimedOut:
		r.add(Error, "node-silent", n.Node, "The server does not answer: %v.", n.Err)
	case store.Loading:
		r.add(Error, "node-loading", n.Node, "The server is still loading its data.")
	default:
		r.add(Error, "node-unreachable", n.Node, "The server cannot be reached: %v.", store.Cause(n.Err))
	}
}

// oldest is the oldest version of Redis that runs the scripts: those before do
// not let a script write after it has asked for the time.
const oldest = 5

// each calls fn for every node that accepted the login.
func each(e redisadmin.Examination, fn func(redisadmin.Examined)) {
	for _, n := range e.Nodes {
		if n.Outcome == store.Granted {
			fn(n)
		}
	}
}

// several reports whether the majority of several nodes decides.
func several(e redisadmin.Examination) bool { return len(e.Nodes) > 1 }

// votes reports whether a node can take part in granting a lock now.
func votes(e redisadmin.Examination, n redisadmin.Examined) bool {
	s := n.Server
	fit := n.Mark.Others == "" && (n.Mark.UsedAlone == "" || !several(e)) && n.Mark.Version == "" && (!several(e) || !n.Mark.Quarantined && !evicts(s) && (n.ServerErr == nil || e.FsyncAlways))
	plain := s.Mode == "" || s.Mode == "standalone"
	if !several(e) {
		plain = plain || s.Mode == "cluster"
	}
	return n.Outcome == store.Granted && fit && plain && !tooOld(s) && !s.Loading && !s.Replica && !full(s) &&
		n.Trip <= e.NodeTimeout && len(n.Lacking) == 0 && len(n.Failing) == 0
}

// lacking are the lists without a majority of nodes for which ok.
func lacking(e redisadmin.Examination, ok func(redisadmin.Examined) bool) (lists [][]int) {
	for _, list := range e.Memberships {
		count := 0
		for _, i := range list {
			if ok(e.Nodes[i]) {
				count++
			}
		}
		if count < majority(list) {
			lists = append(lists, list)
		}
	}
	return lists
}

func majority(list []int) int { return len(list)/2 + 1 }

// bearable is how bad it is that one node does not take part: less so while
// there are enough others.
func bearable(e redisadmin.Examination) Severity {
	if len(lacking(e, func(n redisadmin.Examined) bool { return votes(e, n) })) == 0 {
		return Warning
	}
	return Error
}

func tooOld(s redisadmin.Server) bool {
	major, _, _ := strings.Cut(s.Version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n < oldest
}

func evicts(s redisadmin.Server) bool {
	return s.MaxMemory > 0 && s.Eviction != "" && s.Eviction != "noeviction"
}

func full(s redisadmin.Server) bool {
	return s.MaxMemory > 0 && s.Memory >= s.MaxMemory && !evicts(s)
}
