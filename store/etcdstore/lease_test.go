package etcdstore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// newLeader has another member lead.
func newLeader(t *testing.T, c *etcdtest.Cluster) {
	t.Helper()
	before, err := c.Leader(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "another member leads", func() bool {
		next, err := native(t, c.Endpoints()).Status(t.Context(), c.Endpoints()[(before+1)%3])
		if err != nil {
			return false
		}
		_, _ = native(t, c.Endpoints()[before:before+1]).MoveLeader(t.Context(), next.Header.MemberId)
		now, err := c.Leader(t.Context(), -1)
		return err == nil && now != before
	})
}

func leasesOf(t *testing.T, client *clientv3.Client) map[clientv3.LeaseID]bool {
	t.Helper()
	r, err := client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[clientv3.LeaseID]bool)
	for _, l := range r.Leases {
		all[l.ID] = true
	}
	return all
}

func renewed(t *testing.T, when string, s *store.Store, all []store.Lease) {
	t.Helper()
	for i, err := range s.Renew(t.Context(), all) {
		if err != nil {
			t.Fatalf("renew %s %s: %v", all[i].Name, when, err)
		}
	}
}

// age renews leases until more than half of the TTL is over for what nobody renews. It is the age
// that counts, so there is no event to wait for.
func age(t *testing.T, s *store.Store, ttl time.Duration, all []store.Lease) {
	t.Helper()
	for start := time.Now(); time.Since(start) < ttl*3/5; time.Sleep(ttl / 20) {
		renewed(t, "under another leader", s, all)
	}
}

// A leader that was replaced, and revokes all leases that it knows, takes no lock from its holder.
// The test revokes them.
func TestLeasesOfAnEarlierTerm(t *testing.T) {
	t.Parallel()
	c := three(t)
	client := native(t, c.Endpoints())
	s := open(t, c.Endpoints(), etcdstore.Options{})
	const ttl = 20 * time.Second
	var held []store.Lease
	tokens := make(map[string]store.Grant)
	add := func(name string, kind store.Kind, weight int64) store.Lease {
		l := request(name, ttl)
		l.Kind, l.Weight = kind, weight
		tokens[name] = acquire(t, s, l)
		held = append(held, l)
		return l
	}
	add("mutex", store.Kind{}, 0)
	add("permit", store.Kind{Limit: 3}, 2)
	add("reader", store.Kind{Limit: 100, Shared: true}, 1)
	add("writer", store.Kind{Limit: 100, Shared: true}, 100)
	used := request("used before", ttl)
	acquire(t, s, used)
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: used}); err != nil {
		t.Fatal(err)
	}
	// The waiters get their locks when more than half of what the old leader knows of their leases
	// is over.
	var taken, waiters []store.Lease
	var got []<-chan error
	for _, kind := range []store.Kind{{}, {Limit: 1}} {
		l := request(fmt.Sprint("waited for ", kind.Limit), ttl)
		l.Kind = kind
		acquire(t, s, l)
		taken = append(taken, l)
		l.Owner = store.NewOwner()
		waiters = append(waiters, l)
		got = append(got, waits(t, s, l))
	}

	long := request("long", time.Minute)
	acquire(t, s, long)
	old := leasesOf(t, client)
	newLeader(t, c)
	acquire(t, s, used)
	held = append(held, used)
	held = append(held, store.Lease{Name: long.Name, Owner: long.Owner, TTL: ttl})
	renewed(t, "under another leader", s, held)
	age(t, s, ttl, slices.Concat(held, taken))
	for i, l := range taken {
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
		gets(t, "under another leader", got[i])
	}
	held = append(held, waiters...)
	for id := range old {
		_, _ = client.Revoke(t.Context(), id) // most are over
	}
	renewed(t, "after leases were revoked", s, held)
	if st, err := s.Inspect(t.Context(), long.Name); err != nil || st.ExpiresIn < long.TTL {
		t.Errorf("a lease that was renewed for less than before: %+v, %v, want at least %v", st, err, long.TTL)
	}
	for name, g := range tokens {
		if st, err := s.Inspect(t.Context(), name); err != nil || st.Token != g.Token {
			t.Errorf("%s: %+v, %v, want token %v", name, st, err, g.Token)
		}
	}
	for _, l := range held {
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Errorf("release %s: %v", l.Name, err)
		}
		acquire(t, s, store.Lease{Name: l.Name, Owner: store.NewOwner(), TTL: ttl, Kind: l.Kind})
	}
}

// A leader that stands still for longer than leases last, and goes on, takes no lock from its
// holder. The current version of etcd then revokes leases that live, in most runs.
func TestLeaderGoesOn(t *testing.T) {
	t.Parallel()
	c := three(t)
	leader, err := c.Leader(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	const ttl = 6 * time.Second
	s := open(t, c.Endpoints(), etcdstore.Options{Timeout: patience})
	held := make([]store.Lease, 100)
	valid := make([]clock.Instant, len(held)) // until when each is, by the count of its owner
	now := clock.System().Now
	for i := range held {
		held[i] = request(fmt.Sprint(i), ttl)
		valid[i] = validity.Until(now(), ttl)
		acquire(t, s, held[i])
	}
	// The leader counts time, and etcd tells nobody what it is about to do, so there is no event to
	// wait for.
	renews := func(long time.Duration) {
		t.Helper()
		for start := time.Now(); time.Since(start) < long; time.Sleep(ttl / 20) {
			sent := now()
			for i, err := range s.Renew(t.Context(), held) {
				switch {
				case err == nil && sent < valid[i]:
					valid[i] = validity.Until(sent, ttl)
				case errors.Is(err, store.ErrNotHeld) && now() < valid[i]:
					t.Errorf("lease %s: %v, and it is valid for %v", held[i].Name, err, valid[i].Sub(now()))
				}
			}
			if t.Failed() {
				t.FailNow()
			}
		}
	}
	if err := c.Members[leader].Freeze(); err != nil {
		t.Fatal(err)
	}
	renews(ttl + 3*time.Second) // so that all leases are over by its count
	c.Cut(leader)               // so that it does not learn at once that it was replaced
	if err := c.Members[leader].Thaw(); err != nil {
		t.Fatal(err)
	}
	renews(2 * time.Second)
	c.Heal()
	renews(8 * time.Second) // its first requests time out after seven seconds, and others follow
}
