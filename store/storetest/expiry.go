package storetest

import (
	"errors"
	"math"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// checkExpiry: a lease that nobody renews ends by itself, but not before its
// validity has ended.
func checkExpiry(t *trial) {
	l := t.acquireShort(t.first)
	next := t.request(l.Name, t.long)
	t.eventually("a lock whose lease expired is granted", func() bool {
		_, err := t.other().Acquire(t.Context(), store.AcquireRequest{Lease: next})
		switch {
		case err == nil:
			return true
		case !errors.Is(err, store.ErrBusy):
			t.Fatalf("acquire until the lease before it expires: %v", err)
		}
		return false
	})
	t.track(next)
	if now, until := t.now(), validity.Until(l.start, l.TTL); now < until {
		t.Fatalf("granted to another owner %v before the end of the validity of a lease of %v", until.Sub(now), l.TTL)
	}
	t.heldBy(next)
}

// checkTTLs: a lease lasts for its whole TTL, of any length, also if it was renewed for it.
func checkTTLs(t *trial) {
	const second = time.Second
	for _, ttl := range []time.Duration{1900 * time.Millisecond, 2718281 * time.Microsecond, 9*second + 999*time.Millisecond, 14*second + 900*time.Millisecond, 37*second + 123456*time.Microsecond, t.long - t.long/7} {
		if ttl < t.least || ttl > t.long {
			continue
		}
		lasts := func(what string, l store.Lease, start clock.Instant) {
			t.Helper()
			for _, s := range t.handles() {
				st := t.inspect(s, l.Name)
				if least := t.valid(start, ttl); least > 0 && st.ExpiresIn < least || st.ExpiresIn > ttl+t.resolution {
					t.Fatalf("%s %v: expires in %v, want %v to %v", what, ttl, st.ExpiresIn, least, ttl)
				}
			}
		}
		start := t.now()
		l := t.request(t.name(), ttl)
		t.acquire(t.first, l)
		lasts("a lease of", l, start)
		l = t.request(t.name(), max(ttl/2, t.least))
		first := t.now()
		t.acquire(t.first, l)
		l.TTL = ttl
		start = t.now()
		if err := t.renew(t.first, l); err == nil {
			lasts("renewed for", l, start)
		} else if t.valid(first, max(ttl/2, t.least)) > 0 { // otherwise the machine is too busy
			t.Fatalf("renew for %v: %v", ttl, err)
		}
	}
}

// checkExpiryCountsDown: the remaining time that Inspect returns decreases, and
// then neither Inspect nor List shows a holder.
func checkExpiryCountsDown(t *trial) {
	l := t.acquireShort(t.first)
	left := l.TTL + t.resolution
	t.eventually("the time left counts down to the end", func() bool {
		st := t.inspect(t.other(), l.Name)
		if !st.Held {
			return true
		}
		if st.ExpiresIn <= 0 || st.ExpiresIn > left {
			t.Fatalf("inspect: held, expires in %v, want more than 0s and at most %v, as inspected before", st.ExpiresIn, left)
		}
		left = st.ExpiresIn
		return false
	})
	t.free(l.Name)
	for _, s := range t.handles() {
		if list := t.list(s, l.Name); len(list) != 0 {
			t.Fatalf("list shows a lease that is over: %+v, want none", list)
		}
	}
}

// expires waits until the lease of a lock has ended by itself.
func (t *trial) expires(name string) {
	t.eventually("a lease ends by itself", func() bool { return !t.inspect(t.first, name).Held })
	if t.options.Observed {
		t.eventually("a lease ends by itself in the other handle", func() bool { return !t.inspect(t.other(), name).Held })
	}
}

// checkExpiredHolder: an owner whose lease has expired cannot affect the present
// holder.
func checkExpiredHolder(t *trial) {
	l := t.acquireShort(t.first)
	t.expires(l.Name)
	t.notHeld("release after the expiry", t.first.Release(t.Context(), store.ReleaseRequest{Lease: l.Lease}))

	l = t.acquireShort(t.first)
	t.expires(l.Name)
	start := t.now()
	next := t.request(l.Name, t.long)
	g := t.acquire(t.other(), next)
	for _, s := range t.handles() {
		t.notHeld("renew by the holder before", t.renew(s, l.Lease))
		t.notHeld("release by the holder before", s.Release(t.Context(), store.ReleaseRequest{Lease: l.Lease}))
		t.refuse(s, t.request(l.Name, t.long))
	}
	if st := t.heldBy(next); st.Token != g.Token {
		t.Errorf("inspect: token %v after requests of the holder before, want %v", st.Token, g.Token)
	}
	t.lasts("after the holder before came back", next, t.long, start)
}

// checkLongestTTL: a TTL of Caps.MaxTTL is accepted or, if there is no maximum, the longest
// duration.
func checkLongestTTL(t *trial) {
	longest := t.first.Caps().MaxTTL
	if longest == 0 {
		longest = math.MaxInt64
	}
	start := t.now()
	r := t.request(t.name(), longest)
	t.acquire(t.first, r)
	if st := t.heldBy(r); st.ExpiresIn < longest/2 {
		t.Fatalf("granted for %v: expires in %v, want at least half of that", longest, st.ExpiresIn)
	}
	if err := t.renew(t.first, r); err != nil {
		t.Fatalf("renew for %v: %v", longest, err)
	}
	if st := t.heldBy(r); st.ExpiresIn < longest/2 {
		t.Fatalf("renewed for %v: expires in %v, want at least half of that", longest, st.ExpiresIn)
	}
	t.lasts("granted for the longest TTL", r, t.long, start)
	t.refuse(t.other(), t.request(r.Name, t.long))
	t.release(t.first, r)
}
