package redisstore_test

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// locksInCluster does all that a client of a cluster does, and returns the first error.
func (r ruled) locksInCluster(c *redistest.Cluster, name string) error {
	s, err := redisstore.Open(r.t.Context(), "redis-cluster://locker:pw@"+c.Masters[0].Addr(), patient())
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := r.t.Context()
	l := request(name)
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: l}); err != nil {
		return err
	}
	l.TTL *= 2 // so that the renewal has to write
	if err := s.Renew(ctx, []store.Lease{l})[0]; err != nil {
		return err
	}
	if st, err := s.Inspect(ctx, name); err != nil || !st.Held {
		return errors.Join(err, errors.New("inspect does not show the lock as held"))
	}
	if all, err := s.List(ctx, "jobs/"); err != nil || len(all) != 1 {
		return errors.Join(err, errors.New("list does not show the lock"))
	}
	if err := (ruled{r.t, c.Masters, "", r.patience}).respectsRedisson(s); err != nil {
		return err
	}
	if err := r.moves(c, s, l); err != nil {
		return err
	}
	if err := s.Release(ctx, store.ReleaseRequest{Lease: l, Renewed: true}); err != nil {
		return err
	}
	if err := s.Release(ctx, store.ReleaseRequest{Lease: l}); !errors.Is(err, store.ErrNotHeld) { // which leaves a tombstone
		return err
	}
	server := c.Has(r.t, name)
	if err := (ruled{r.t, []*redistest.Server{server}, "", r.patience}).waits(s, name); err != nil {
		return err
	}
	if err := (ruled{r.t, []*redistest.Server{server}, "", r.patience}).excess(); err != nil {
		return err
	}
	if err := r.breaks(s, name); err != nil {
		return err
	}
	l = request(name)
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: l}); err != nil {
		return err
	}
	return errors.Join(s.Release(ctx, store.ReleaseRequest{Lease: l}), r.shares(s, name+"/permits"))
}

// breaks checks that the holder of a lease is told when it is broken.
func (r ruled) breaks(s *store.Store, name string) error {
	told := make(chan string, 1)
	defer s.NotifyBroken(func(owner string) {
		select {
		case told <- owner:
		default: // each member says it
		}
	})()
	l := request(name)
	g, err := s.Acquire(r.t.Context(), store.AcquireRequest{Lease: l})
	if err != nil {
		return err
	}
	defer s.Release(r.t.Context(), store.ReleaseRequest{Lease: l})
	if _, err := s.BreakLease(r.t.Context(), store.BreakRequest{Name: name, Owner: l.Owner, Token: g.Token}); err != nil {
		return err
	}
	select {
	case <-told:
		return nil
	case <-time.After(r.patience):
		return errors.New("the holder of a broken lease is not told")
	}
}

// moves renews the lease while its slot is being moved.
func (r ruled) moves(c *redistest.Cluster, s *store.Store, l store.Lease) error {
	m := c.BeginMove(r.t, l.Name, another(r.t, c, l.Name))
	defer func() {
		m.End(r.t)
		eventually.True(r.t, "all members know of the move", func() bool { return c.Has(r.t, l.Name) != nil })
	}()
	m.Carry(r.t, l.Name, "{"+l.Name+"}:token")
	return s.Renew(r.t.Context(), []store.Lease{l})[0]
}

// A user that may not read the epoch of a cluster waits for locks,
// and is refused once, not at each refresh of the slot map.
func TestClusterWithoutTheEpoch(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	for _, s := range c.Masters {
		s.Text(t, "ACL", "SETUSER", "u", "reset", "on", ">pw", "~*", "&*", "+@all", "-cluster|info")
	}
	s, err := redisstore.Open(t.Context(), "redis-cluster://u:pw@"+c.Masters[0].Addr(), patient())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	held := request("stock")
	g := acquire(t, s, held)
	requests, all := queueUp(t, c.Has(t, "stock"), "stock", s)
	count := func(what string) (n int) {
		for _, m := range c.Masters {
			if found := regexp.MustCompile(what).FindStringSubmatch(m.Text(t, "INFO", "commandstats")); found != nil {
				calls, _ := strconv.Atoi(found[1])
				n += calls
			}
		}
		return n
	}
	slots := `cmdstat_cluster\|slots:calls=(\d+)`
	before := count(slots) // others ask as well
	eventually.True(t, "the slot map is refreshed", func() bool {
		return count(slots) > before+2
	})
	if n := count(`cmdstat_cluster\|info:.*rejected_calls=(\d+)`); n != 1 {
		t.Errorf("it was refused %d times, want once", n)
	}
	mustRelease(t, s, held, store.Grant{})
	inTurn(t, g, requests, all, s)
}

// The rule that is printed for a cluster is enough, and nothing in it can be dropped except
// INFO, without which the client cannot warn of servers that evict locks, and CLUSTER INFO, without
// which a waiter may miss that its slot has moved away and back.
func TestLeastPrivilegeInACluster(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	r := ruled{t, c.Masters, "", long}
	rule, err := redisadmin.ACL{User: "locker", Prefix: "jobs/", Uses: redisadmin.ToLock | redisadmin.ToList, Cluster: true}.Rule()
	if err != nil {
		t.Fatal(err)
	}
	r.apply(rule)
	if err := r.locksInCluster(c, "jobs/1"); err != nil {
		t.Fatalf("with the whole rule: %v", err)
	}
	if slices.ContainsFunc(rule, func(word string) bool { return strings.Contains(word, "leasehold:node") }) {
		t.Error("the rule permits the mark, which clusters do not have")
	}
	r.patience = 500 * time.Millisecond
	for i := 1; i < len(rule); i++ {
		if rule[i] == "+info" || rule[i] == "+cluster|info" {
			continue
		}
		r.apply(slices.Delete(slices.Clone(rule), i, i+1))
		if err := r.locksInCluster(c, "jobs/1"); err == nil {
			t.Errorf("%s can be dropped", rule[i])
		}
	}
}
