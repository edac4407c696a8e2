package redisstore

import (
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// clustered is the topology of the members of a cluster, among which a router finds the
// one that has a lock.
type clustered struct {
	independent
	r *router
}

// ready has nothing to do: a Cluster refuses such locks before.
func (clustered) ready(*fleet, store.Lease) error { return nil }

func (clustered) keys() func(string) (string, int) { return cluster.Place }

func (t clustered) servers(*fleet) []*node { return t.r.allMembers() }

func (clustered) readsInline(*fleet) bool { return false }

// fit says nothing about a replica: redirections notice it.
func (clustered) fit(n *node, id membership.Identity) error {
	id.Mode, id.Role = "", ""
	if err := id.Unfit(); err != nil {
		n.log.Warn("the server can lose locks", "err", err)
	}
	return nil
}

func (t clustered) listen(s *session, hello resp.Value) error { return t.r.listen(s, hello) }

func (t clustered) redirect(n *node, c call, said script.Reply) (script.Reply, bool) {
	return t.r.redirect(n, c, said)
}
