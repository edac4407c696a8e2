package stories

import (
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

var revokedLease = Story{
	Name:  "revoked-lease",
	Title: "A replaced leader of etcd revokes the lease of a living holder",
	Summary: `A leader of etcd stands still, and another one is elected, to which the holder renews its
lease. The old leader comes back, and before it learns that it was replaced it
revokes the leases that are over by its own count. Versions before 3.4.31 and 3.5.13
carry that out: the lock is free while its holder works. Later versions still do so if
the process of the leader stands still for longer than its leases last.
(The old leader is modelled: the story sends the request that it sends. A real one
does so only if it stops and goes on at the wrong moments.)`,
	Weak: Part{
		Design: "concurrency.Mutex in an etcd of such a version, and a resource that accepts every write.",
		play: func(s *stage) ending {
			client, url := s.defective()
			r := s.resource(false)
			a, b := s.enter("A"), s.enter("B")
			a.locks(url, "concurrency.Mutex", long)
			s.revokes(client)
			b.locks(url, "concurrency.Mutex", long)
			b.writes(r, 0)
			return writesOver(a, r, "A and B both have the lock, and A has written over B's work.")
		},
	},
	Ours: []Part{{
		Design: "Leasehold in the same etcd, with --require crash-safe.",
		play: func(s *stage) ending {
			_, url := s.defective()
			r := s.enter("A").open(url).do(order{Do: acquire, Lock: lock, TTL: long, Require: store.CrashSafe})
			if r.Err == "" {
				return ending{Broken, "A got the lock in an etcd that can take it away."}
			}
			s.does("A", "asks for the lock: no (%s)", r.Err)
			return ending{Held, "such a version is refused. Nobody relies on a lock that it can take away."}
		},
	}, {
		Design: "Leasehold in the same etcd, without requirements. The resource looks at tokens.",
		play: func(s *stage) ending {
			client, url := s.defective()
			r := s.resource(true)
			a, b := s.enter("A").open(url), s.enter("B").open(url)
			first := a.gets(terms{ttl: long})
			s.revokes(client)
			return afterSecond(s, r, a, first, b, b.gets(terms{ttl: long}))
		},
	}},
}

// errMended means that the installed etcd does not have the defect.
var errMended = errors.New("it does not have the defect")

// defective starts an etcd that has the defect.
func (s *stage) defective() (client *clientv3.Client, url string) {
	client, url = s.etcd()
	e, err := etcdstore.Examine(s.ctx, "etcd://"+strings.Join(client.Endpoints(), ","), nil)
	s.check(err)
	if e.Unusable != nil || len(e.Members) != 1 || e.Members[0].Err != nil {
		s.fail("etcd cannot be examined: %+v", e)
	}
	if e.Class() > store.Efficiency {
		s.check(fmt.Errorf("%w: etcd %s is installed: %w", ErrLeftOut, e.Members[0].Version, errMended))
	}
	return client, url
}

// revokes has the lease of the holder revoked.
func (s *stage) revokes(client *clientv3.Client) {
	r, err := client.Get(s.ctx, "leasehold/"+lock+"/", clientv3.WithFirstCreate()...)
	s.check(err)
	if len(r.Kvs) == 0 {
		s.fail("nobody has the lock")
	}
	_, err = client.Revoke(s.ctx, clientv3.LeaseID(r.Kvs[0].Lease))
	s.check(err)
	s.happens("etcd", "the leader of before comes back, and revokes A's lease, which lives")
}
