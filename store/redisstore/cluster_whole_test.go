package redisstore_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// carried are the keys of a lock that are carried first when its slot moves: none, some that a
// command may name, or all.
var carried = map[string]func(m *redistest.Move, t *testing.T, name string){
	"nothing": func(*redistest.Move, *testing.T, string) {},
	"the lock": func(m *redistest.Move, t *testing.T, name string) {
		m.Carry(t, name, "{"+name+"}:token", "{"+name+"}:waits")
	},
	"everything": func(m *redistest.Move, t *testing.T, _ string) { m.Carry(t) },
}

var tryAgain = regexp.MustCompile(`errorstat_TRYAGAIN:count=(\d+)`)

// refusals returns how many commands the servers have refused because a slot was being moved.
func refusals(t *testing.T, servers ...*redistest.Server) (n int) {
	t.Helper()
	for _, s := range servers {
		if found := tryAgain.FindStringSubmatch(s.Text(t, "INFO", "errorstats")); found != nil {
			count, _ := strconv.Atoi(found[1])
			n += count
		}
	}
	return n
}

// contents returns the keys of a slot and what they hold, on two members between which it is being
// moved. Counters are left out.
func contents(t *testing.T, c *redistest.Cluster, name string, members ...*redistest.Server) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, s := range members {
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		in := resp.NewReader(conn)
		ask := func(args ...string) string {
			if _, err := conn.Write(slices.Concat(resp.Command("ASKING"), resp.Command(args...))); err != nil {
				t.Fatal(err)
			}
			if _, err := in.Next(); err != nil {
				t.Fatal(err)
			}
			v, err := in.Next()
			if err != nil {
				t.Fatal(err)
			}
			return v.String()
		}
		for _, key := range strings.Fields(s.Text(t, "CLUSTER", "GETKEYSINSLOT", c.Slot(t, name), "100")) {
			if !strings.HasSuffix(key, script.CounterEnd) {
				all[key] = ask("DUMP", key)
			}
		}
	}
	return all
}

// whileMoved starts do while the slot of a lock is being moved with some of its keys carried,
// checks that do is refused and changes nothing of the lock and its queue, and has the slot
// arrive. It returns the error of do.
func whileMoved(t *testing.T, c *redistest.Cluster, name string, carry func(*redistest.Move, *testing.T, string), do func() error) error {
	t.Helper()
	from, to := c.Has(t, name), another(t, c, name)
	m := c.BeginMove(t, name, to)
	carry(m, t, name)
	before, refused := contents(t, c, name, from, to), refusals(t, from, to)
	done := make(chan error, 1)
	go func() { done <- do() }()
	eventually.True(t, "it is refused again and again", func() bool {
		select {
		case err := <-done:
			t.Fatalf("it ended with %v while the slot was being moved", err)
		default:
		}
		return refusals(t, from, to) >= refused+2
	})
	if after := contents(t, c, name, from, to); !maps.Equal(after, before) {
		t.Errorf("the lock and its queue are\n%q\nwant as before\n%q", after, before)
	}
	m.End(t)
	return <-done
}

// A release while the slot is being moved hands the lock over after the move, to the first waiter.
// It does nothing before: some keys of the queue may be on another member.
func TestReleaseInASlotBeingMoved(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	holder, other := openCluster(t, c.Masters, nil), openCluster(t, c.Masters, nil)
	for what, carry := range carried {
		t.Run(what, func(t *testing.T) {
			name := strings.ReplaceAll(what, " ", "-")
			held := request(name)
			g := acquire(t, holder, held)
			requests, all := queueUp(t, c.Has(t, name), name, other, other)
			err := whileMoved(t, c, name, carry, func() error {
				return holder.Release(t.Context(), store.ReleaseRequest{Lease: held})
			})
			if err != nil {
				t.Errorf("release: %v", err)
			}
			inTurn(t, g, requests, all, other, other)
		})
	}
	nothingLeft(t, c.Masters)
}

// The only holder of a permit renews its lease before the first key of the slot is moved, and after the
// last one: the keys that a renewal names are all there.
func TestPermitInASlotBeingMoved(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	s := openCluster(t, c.Masters, nil)
	for _, what := range []string{"nothing", "everything"} {
		held := shared(what, store.Semaphore(2), 1)
		acquire(t, s, held)
		m := c.BeginMove(t, what, another(t, c, what))
		carried[what](m, t, what)
		if err := s.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
			t.Errorf("renew with %s carried: %v", what, err)
		}
		m.End(t)
		mustRelease(t, s, held, store.Grant{})
	}
}

// What changes a lock that several can hold, and may serve its queue, waits for the move as well.
func TestChangesInASlotBeingMoved(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	holder, other := openCluster(t, c.Masters, nil), openCluster(t, c.Masters, nil)
	two, three := store.Semaphore(2), store.Semaphore(3)
	for what, test := range map[string]struct {
		kind         store.Kind
		holder, next int64 // weights
		change       func(r store.Lease, g store.Grant) error
		ends         error // how the wait ends
	}{
		"downgrade": {store.ReadWrite, store.ReadWriteLimit, 1, func(r store.Lease, _ store.Grant) error {
			_, err := holder.Downgrade(t.Context(), r)
			return err
		}, nil},
		"resize": {two, 2, 1, func(r store.Lease, _ store.Grant) error {
			return holder.Resize(t.Context(), r.Name, two, three)
		}, store.ErrKindMismatch},
		"break": {two, 2, 2, func(r store.Lease, g store.Grant) error {
			_, err := holder.BreakLease(t.Context(), store.BreakRequest{Name: r.Name, Owner: r.Owner, Token: g.Token, Now: true})
			return err
		}, nil},
	} {
		for keys, carry := range carried {
			t.Run(fmt.Sprintf("%s with %s carried", what, keys), func(t *testing.T) {
				name := what + "-" + strings.ReplaceAll(keys, " ", "-")
				held := shared(name, test.kind, test.holder)
				g := acquire(t, holder, held)
				done := wait(t, t.Context(), other, []*redistest.Server{c.Has(t, name)}, shared(name, test.kind, test.next))
				if err := whileMoved(t, c, name, carry, func() error { return test.change(held, g) }); err != nil {
					t.Error(err)
				}
				select {
				case o := <-done:
					if !errors.Is(o.err, test.ends) {
						t.Errorf("the wait ended with %v, want %v", o.err, test.ends)
					}
				case <-time.After(soon):
					t.Errorf("the wait did not end within %v", soon)
				}
			})
		}
	}
}
