package redisstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/simnet"
	"github.com/leasehold-dev/leasehold/store"
)

// withUndecided calls test in a bubble for each kind of lease, with a lease of three servers
// that the first server has lost and of which the last one does not speak.
func withUndecided(t *testing.T, test func(t *testing.T, u undecided)) {
	for what, c := range breakables() {
		t.Run(what, func(t *testing.T) { inUndecided(t, c[0], c[1], test) })
	}
	t.Run("mutex", func(t *testing.T) { inUndecided(t, request("mutex"), request("mutex"), test) })
}

func inUndecided(t *testing.T, r, next store.Lease, test func(t *testing.T, u undecided)) {
	synctest.Test(t, func(t *testing.T) {
		r.TTL, next.TTL = 30*time.Second, 30*time.Second
		network, hosts := bubbled(t, 3)
		u := undecided{lease: r, next: next, hosts: hosts, holder: openBubbled(t, network, hosts, nil), operator: openBubbled(t, network, hosts, nil)}
		g := acquire(t, u.holder, r)
		u.lease, u.token = g.Lease, g.Token
		synctest.Wait()
		time.Sleep(time.Second)
		hosts[0].Do("DEL", r.Name)
		hosts[2].Silence()
		defer hosts[2].Speak()
		test(t, u)
	})
}

// undecided is a lease on three servers. The first server has lost it. The second and the third
// have it, but the third is silent.
type undecided struct {
	lease, next      store.Lease // next wants the lock as well
	token            leasehold.Token
	hosts            []*simnet.Host
	holder, operator *store.Store
}

func (u undecided) request() store.BreakRequest {
	return store.BreakRequest{Name: u.lease.Name, Owner: u.lease.Owner, Token: u.token, Reason: "test"}
}

// If one server has lost a lease and another one is silent, the lease is not shown as held, nor its
// lock as free. Its lock, its owner, its token and the longest that it can last are shown.
func TestUndecidedLeaseIsShown(t *testing.T) {
	withUndecided(t, func(t *testing.T, u undecided) {
		state, err := u.operator.Inspect(t.Context(), u.lease.Name)
		if err != nil {
			t.Fatal(err)
		}
		list, err := u.operator.List(t.Context(), u.lease.Name)
		if err != nil || len(list) != 1 {
			t.Fatalf("list: %+v, %v, want one lock", list, err)
		}
		for _, st := range []store.State{state, list[0]} {
			if st.Held || st.Free() || len(st.Undecided) != 1 {
				t.Fatalf("%+v, want one lease that is undecided", st)
			}
			h := st.Undecided[0]
			if h.Holder.Owner != u.lease.Owner || h.Token != u.token || h.Kind.Normal() != u.lease.Kind.Normal() || h.Weight != max(u.lease.Weight, 1) {
				t.Errorf("%+v, want the lease %+v with token %v", h, u.lease, u.token)
			}
			if h.ExpiresIn <= 0 || h.ExpiresIn > u.lease.TTL {
				t.Errorf("expires in %v, want up to %v", h.ExpiresIn, u.lease.TTL)
			}
			if want := "no answer from " + u.hosts[2].Addr() + " (timed out)"; store.Silent(st.Nodes) != want {
				t.Errorf("%q, want %q", store.Silent(st.Nodes), want)
			}
		}
		u.hosts[2].Speak()
		time.Sleep(time.Second)
		if state, err = u.operator.Inspect(t.Context(), u.lease.Name); err != nil || !state.Held || len(state.Undecided) > 0 {
			t.Errorf("%+v, %v, want the lease held when all servers answer", state, err)
		}
	})
}

// While all servers answer, nothing is undecided: a lease on one of three servers is not held.
func TestLeaseOfAMinorityIsNotUndecided(t *testing.T) {
	t.Parallel()
	withUndecided(t, func(t *testing.T, u undecided) {
		u.hosts[2].Speak()
		u.hosts[2].Do("DEL", u.lease.Name)
		if state, err := u.operator.Inspect(t.Context(), u.lease.Name); err != nil || !state.Free() {
			t.Errorf("%+v, %v, want the lock free", state, err)
		}
	})
}

// The longest that a lease can last counts what a silent server may have of it: the lease is
// held on two servers, and ends sooner on one of them.
func TestExpiryCountsSilentServers(t *testing.T) {
	t.Parallel()
	withUndecided(t, func(t *testing.T, u undecided) {
		renew := func() {
			t.Helper()
			if err := u.holder.Renew(t.Context(), []store.Lease{u.lease})[0]; err != nil {
				t.Fatal(err)
			}
		}
		u.hosts[2].Speak()
		time.Sleep(time.Second)
		renew() // which gives the lease back to the first server
		time.Sleep(10 * time.Second)
		u.hosts[0].Refuse(true)
		u.hosts[0].Cut()
		renew()
		u.hosts[0].Refuse(false)
		time.Sleep(time.Second)
		for _, silent := range []bool{false, true} {
			if silent {
				u.hosts[2].Silence()
			}
			state, err := u.operator.Inspect(t.Context(), u.lease.Name)
			if err != nil || !state.Held || state.ExpiresIn <= 25*time.Second {
				t.Errorf("one server is silent: %v: %+v, %v, want it held for more than 25s", silent, state, err)
			}
		}
	})
}

// A lease that was broken is not taken for over because it is shown with another token now: that of
// the one server that answers and has it, whose counter is ahead.
func TestBreakOfALeaseWithAnotherToken(t *testing.T) {
	t.Parallel()
	withUndecided(t, func(t *testing.T, u undecided) {
		u.hosts[2].Speak()
		time.Sleep(time.Second)
		renew := func() {
			t.Helper()
			if err := u.holder.Renew(t.Context(), []store.Lease{u.lease})[0]; err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		renew() // which gives the lease back to the first server
		if u.lease.Kind.IsMutex() {
			u.hosts[0].Do("SET", "{"+u.lease.Name+"}:token", u.token.String())
			u.hosts[1].Do("SET", "{"+u.lease.Name+"}:token", (u.token + 1000).String())
		} else {
			u.hosts[1].Do("DEL", u.lease.Name)
			renew() // which gives it back to the second one, with a token of its own
		}
		state, err := u.operator.Inspect(t.Context(), u.lease.Name)
		if err != nil || !state.Held {
			t.Fatalf("%+v, %v, want it held", state, err)
		}
		b := u.request()
		b.Token = state.Token
		if left, err := u.operator.BreakLease(t.Context(), b); err != nil || left <= 0 {
			t.Fatalf("break: %v left, %v, want more than 0", left, err)
		}
		u.hosts[0].Do("DEL", u.lease.Name)
		u.hosts[2].Silence()
		state, err = u.operator.Inspect(t.Context(), u.lease.Name)
		if err != nil || len(state.Undecided) != 1 || state.Undecided[0].Token == b.Token {
			t.Errorf("%+v, %v, want an undecided lease with another token than %v", state, err, b.Token)
		}
		if left, err := u.operator.BreakLease(t.Context(), b); err != nil || left <= 0 {
			t.Errorf("second break: %v left, %v, want more than 0", left, err)
		}
	})
}

// An undecided lease can be broken: no majority renews it or gives it back from then on. It is
// over when the owner has released it.
func TestBreakOfAnUndecidedLease(t *testing.T) {
	withUndecided(t, func(t *testing.T, u undecided) {
		left, err := u.operator.BreakLease(t.Context(), u.request())
		if err != nil || left <= 0 || left > u.lease.TTL {
			t.Fatalf("break: %v left, %v, want up to %v", left, err, u.lease.TTL)
		}
		u.hosts[2].Speak()
		for range 2 {
			if err := u.holder.Renew(t.Context(), []store.Lease{u.lease})[0]; !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("renewal: %v, want %v", err, store.ErrNotHeld)
			}
			time.Sleep(time.Second)
		}
		if err := u.holder.Release(t.Context(), store.ReleaseRequest{Lease: u.lease, Renewed: true}); err != nil {
			t.Errorf("release by the holder: %v", err)
		}
		if left, err := u.operator.BreakLease(t.Context(), u.request()); err != nil || left != 0 {
			t.Errorf("break after the release: %v left, %v, want 0", left, err)
		}
		acquire(t, u.operator, u.next)
	})
}

// A client that breaks an undecided lease returns when it can last no longer, although its holder
// is dead and the silent server never answers.
func TestBreakOfAnUndecidedLeaseOfADeadHolder(t *testing.T) {
	t.Parallel()
	withUndecided(t, func(t *testing.T, u undecided) {
		told, start := 0, time.Now()
		err := leasehold.New(u.operator, nil).Operator().Break(t.Context(), leasehold.BreakRequest{Name: u.lease.Name, Token: u.token, Reason: "test", OnWait: func(error) { told++ }})
		if lasted := time.Since(start); err != nil || told == 0 || lasted < 20*time.Second || lasted > u.lease.TTL+3*time.Second {
			t.Errorf("break: %v after %v, told %d times of the wait; want nil soon after the rest of %v", err, lasted, told, u.lease.TTL)
		}
		acquire(t, u.operator, u.next)
	})
}

// An undecided lease can be ended at once.
func TestBreakOfAnUndecidedLeaseNow(t *testing.T) {
	t.Parallel()
	withUndecided(t, func(t *testing.T, u undecided) {
		err := leasehold.New(u.operator, nil).Operator().Break(t.Context(), leasehold.BreakRequest{Name: u.lease.Name, Token: u.token, Now: true})
		if err != nil {
			t.Fatal(err)
		}
		if state, err := u.operator.Inspect(t.Context(), u.lease.Name); err != nil || !state.Free() {
			t.Errorf("%+v, %v, want the lock free", state, err)
		}
		acquire(t, u.operator, u.next)
		u.hosts[2].Speak()
		if err := u.holder.Renew(t.Context(), []store.Lease{u.lease})[0]; !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("renewal: %v, want %v", err, store.ErrNotHeld)
		}
	})
}

// A break that does not fit an undecided lease, or that too few servers answer, does not report
// that nobody holds the lock. Its error names the server that does not answer.
func TestBreakDoesNotGuess(t *testing.T) {
	withUndecided(t, func(t *testing.T, u undecided) {
		c := leasehold.New(u.operator, nil)
		silent := "no answer from " + u.hosts[2].Addr()
		for _, r := range []leasehold.BreakRequest{{Token: u.token + 1}, {Token: u.token, Owner: "somebody"}} {
			r.Name = u.lease.Name
			if err := c.Operator().Break(t.Context(), r); !errors.Is(err, leasehold.ErrBusy) || !strings.Contains(err.Error(), "may be held by") || !strings.Contains(err.Error(), silent) {
				t.Errorf("break with token %v of owner %q: %v, want ErrBusy and text with %q", r.Token, r.Owner, err, silent)
			}
		}
		u.hosts[1].Silence()
		defer u.hosts[1].Speak()
		err := c.Operator().Break(t.Context(), leasehold.BreakRequest{Name: u.lease.Name, Token: u.token})
		if !errors.Is(err, leasehold.ErrQuorum) || !strings.Contains(err.Error(), u.hosts[2].Addr()+": timed out") {
			t.Errorf("break while one of three servers answers: %v, want ErrQuorum and text with %q", err, u.hosts[2].Addr()+": timed out")
		}
	})
}

// A break whose lease ends by itself, on one server after the other, succeeds with a server down.
func TestBreakWhileALeaseEnds(t *testing.T) {
	t.Parallel()
	for later := range 2 {
		for _, early := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond, time.Second} {
			t.Run(fmt.Sprintf("later=%d/early=%v", later, early), func(t *testing.T) {
				inUndecided(t, request("mutex"), request("mutex"), func(t *testing.T, u undecided) {
					u.hosts[0].Do("SET", u.lease.Name, u.hosts[1].Value(u.lease.Name), "PX", "1000")
					u.hosts[1].Do("PEXPIRE", u.lease.Name, "1000")
					u.hosts[later].Do("PEXPIRE", u.lease.Name, fmt.Sprint((time.Second + 5*time.Millisecond).Milliseconds()))
					time.Sleep(time.Second - early)
					err := leasehold.New(u.operator, nil).Operator().Break(t.Context(), leasehold.BreakRequest{Name: u.lease.Name, Token: u.token})
					if err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// The owner of an undecided lease can be released from elsewhere.
func TestReleaseOfAnUndecidedOwner(t *testing.T) {
	t.Parallel()
	withUndecided(t, func(t *testing.T, u undecided) {
		c := leasehold.New(u.operator, nil)
		if err := c.Operator().ReleaseOwner(t.Context(), u.lease.Name, u.lease.Owner); err != nil {
			t.Fatal(err)
		}
		if err := c.Operator().ReleaseOwner(t.Context(), u.lease.Name, u.lease.Owner); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("second release: %v, want ErrLost", err)
		}
		acquire(t, u.operator, u.next)
		u.hosts[2].Speak()
		if err := u.holder.Renew(t.Context(), []store.Lease{u.lease})[0]; !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("renewal: %v, want %v", err, store.ErrNotHeld)
		}
	})
}

// WaitFree waits for an undecided lease: until it can last no longer, or until the servers say
// that nobody holds the lock.
func TestWaitFreeForAnUndecidedLease(t *testing.T) {
	t.Parallel()
	withUndecided(t, func(t *testing.T, u undecided) {
		start := time.Now()
		wait := func() (err error) {
			gone := leasehold.New(u.operator, nil).Operator().WaitFree(t.Context(), u.lease.Name, func(reason error) {
				if busy, ok := errors.AsType[*leasehold.BusyError](reason); !ok || !busy.Undecided || busy.Holder.Owner != u.lease.Owner {
					err = errors.Join(err, fmt.Errorf("the reason to wait is %w, want the undecided holder", reason))
				}
			})
			return errors.Join(err, gone)
		}
		time.AfterFunc(5*time.Second, func() {
			u.hosts[2].Do("DEL", u.lease.Name)
			u.hosts[2].Speak()
		})
		if err := wait(); err != nil || time.Since(start) > 7*time.Second || time.Since(start) < 5*time.Second {
			t.Errorf("%v after %v, want nil soon after 5s, when the servers answer", err, time.Since(start))
		}
		u.hosts[2].Silence()
		if err := wait(); err != nil || time.Since(start) < 20*time.Second || time.Since(start) > u.lease.TTL+3*time.Second {
			t.Errorf("%v after %v, want nil soon after the lease of %v has expired on a server", err, time.Since(start), u.lease.TTL)
		}
	})
}

// An election names a leader that is undecided, and observers see no change.
func TestUndecidedLeader(t *testing.T) {
	inUndecided(t, request("mutex"), request("mutex"), func(t *testing.T, u undecided) {
		e := leasehold.New(u.operator, nil).Election(u.lease.Name)
		l, err := e.Leader(t.Context())
		if err != nil || !l.Undecided || l.Vacant() || l.Token != u.token || l.ExpiresIn <= 0 {
			t.Errorf("leader: %+v, %v, want the undecided one with token %v", l, err, u.token)
		}
		u.hosts[2].Speak()
		time.Sleep(time.Second)
		time.AfterFunc(time.Second, func() { u.hosts[2].Silence() })
		time.AfterFunc(3*time.Second, func() { u.hosts[1].Do("DEL", u.lease.Name) })
		var seen []string
		for l, err := range e.Observe(t.Context()) {
			seen = append(seen, fmt.Sprintf("%t %t %v", l.Vacant(), l.Undecided, err))
			if l.Vacant() {
				break
			}
		}
		if got := strings.Join(seen, ", "); got != "false false <nil>, true false <nil>" {
			t.Errorf("observed (vacant, undecided, error) %s, want the leader and then a vacancy", got)
		}
	})
}
