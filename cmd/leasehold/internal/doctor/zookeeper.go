package doctor

import (
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore"
)

// ZooKeeper returns the findings about locks with that TTL in ZooKeeper.
func ZooKeeper(e zkstore.Examination, ttl time.Duration) []Finding {
	r := &report{}
	if e.Unusable != nil {
		r.add(Error, "zookeeper-unusable", e.Node, "No lock can be acquired there: %v.", e.Unusable)
	}
	for _, s := range e.Servers {
		if s.Err != nil {
			r.add(Warning, "node-unreachable", s.Addr, "It does not answer: %v.", s.Err)
		}
		if zkstore.TooOld(s.Version) {
			r.add(Error, "zookeeper-too-old", s.Addr, "It is ZooKeeper %s. Locks need %s or newer.", store.Excerpt(s.Version), zkstore.LeastVersion)
		}
		if e.Known && s.Tick > e.Tick {
			r.add(Error, "zookeeper-tick", s.Addr, "Its tickTime is %v, and the store takes it for %v: leases can end earlier than their holders expect.", s.Tick, e.Tick)
		}
	}
	if !e.Known {
		return r.sorted()
	}
	if ttl > e.MaxTTL {
		r.add(Error, "ttl-over-maximum", e.Node, "Locks with a TTL of %v are refused: the longest is %v.", ttl, e.MaxTTL)
	}
	switch {
	case e.Voters == 0:
		r.add(Info, "zookeeper-few-members", e.Node, "It is one server: no lock can be acquired while it is down, and all are lost with its disk.")
	case e.Voters < 3:
		r.add(Warning, "zookeeper-few-members", e.Node, "The ensemble has %d voting members, all of which are needed.", e.Voters)
	case e.Voters%2 == 0:
		r.add(Info, "even-nodes", e.Node, "The ensemble has %d voting members, and survives the loss of no more than one with %d would.", e.Voters, e.Voters-1)
	}
	if len(e.Servers) < e.Voters {
		r.add(Warning, "zookeeper-members-unnamed", e.Node, "The ensemble has %d voting members, and the URL names %d: if those fail, locks fail although the ensemble works.", e.Voters, len(e.Servers))
	}
	if e.Open {
		r.add(Warning, "zookeeper-open", e.Node, "Anybody who can reach a server can change and remove locks.")
	}
	if limit := e.Tick / 2; e.RoundTrip > limit {
		r.add(Warning, "zookeeper-slow", e.Node, "A write took %v. With more than half a tick, %v, renewals come late.", store.Round(e.RoundTrip), limit)
	}
	return r.sorted()
}
