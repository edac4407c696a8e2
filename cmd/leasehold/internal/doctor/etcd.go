package doctor

import (
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// Etcd returns the findings about locks with a TTL in an etcd cluster.
func Etcd(e etcdstore.Examination, ttl time.Duration) []Finding {
	r := &report{}
	if e.Unusable != nil {
		r.add(Error, "etcd-unusable", e.Node, "No lock can be acquired there: %v.", e.Unusable)
	}
	if e.Voters > 0 && e.Class() == store.Efficiency {
		r.add(Warning, "etcd-not-safe", e.Node, "Locks there are for efficiency only: %s.", e.Why())
	}
	if e.Voters > 0 && e.Class() == store.CrashSafe {
		r.add(Info, "etcd-few-members", e.Node, "Locks there are crash-safe: %s.", e.Why())
	}
	voters := 0
	for _, m := range e.Members {
		etcdMember(r, m, ttl)
		if !m.Learner {
			voters++
		}
	}
	if voters < e.Voters {
		r.add(Warning, "etcd-members-unnamed", e.Node, "The cluster has %d voting members, and the URL names %d: if those fail, locks fail although the cluster works.", e.Voters, voters)
	}
	if e.Restored {
		r.add(Warning, "etcd-restored", e.Node, "The data came from a backup. Unless its revision was made higher, tokens that were given out after the backup are given out again.")
	}
	if e.Uncompacted {
		r.add(Warning, "etcd-uncompacted", e.Node, "It remembers more than %d changes: its database grows until it is full and refuses locks.", etcdstore.MostHistory)
	}
	return r.sorted()
}

func etcdMember(r *report, m etcdstore.Member, ttl time.Duration) {
	switch {
	case m.Err != nil:
		r.add(Warning, "etcd-member-down", m.Endpoint, "The member does not answer: %v.", store.Excerpt(m.Err.Error()))
		return
	case m.Learner:
		r.add(Warning, "etcd-learner", m.Endpoint, "The member is a learner. It keeps no locks.")
	case m.Leader == 0:
		r.add(Error, "etcd-no-leader", m.Endpoint, "The member knows no leader: no lock can be acquired through it.")
	}
	if len(m.Errors) > 0 {
		r.add(Error, "etcd-alarm", m.Endpoint, "The member reports: %s.", strings.Join(m.Errors, ", "))
	}
	if m.Took > ttl/10 {
		r.add(Warning, "etcd-slow", m.Endpoint, "The member took %v to answer. With a TTL of %v, a few such answers in a row end a lease.", store.Round(m.Took), ttl)
	}
}
