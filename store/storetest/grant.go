package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

func checkCaps(t *trial) {
	for _, s := range t.handles() {
		c := s.Caps()
		if c.Engine == "" || c.Clock == "" {
			t.Errorf("caps: engine %q, clock %q: neither may be empty", c.Engine, c.Clock)
		}
		if !slices.Contains([]string{"process", "machine", "network"}, c.Reach) {
			t.Errorf("caps: reach %q is none of process, machine, network", c.Reach)
		}
		if c.Nodes < 1 || c.Quorum <= c.Nodes/2 || c.Quorum > c.Nodes {
			t.Errorf("caps: a quorum of %d of %d nodes is not a majority", c.Quorum, c.Nodes)
		}
		if c.MaxTTL < 0 || c.MinTTL < 0 || c.Resolution < 0 {
			t.Errorf("caps: MinTTL %v, MaxTTL %v, Resolution %v: none may be negative", c.MinTTL, c.MaxTTL, c.Resolution)
		}
		if c.MaxTTL > 0 && c.MaxTTL < max(c.MinTTL, store.MinTTL) {
			t.Errorf("caps: MaxTTL %v is shorter than MinTTL %v", c.MaxTTL, c.MinTTL)
		}
		if c.Rejoins && c.NoQueue {
			t.Errorf("caps: Rejoins and NoQueue are set")
		}
	}
}

// checkRequire: a lock that requires more than the store can give is refused.
func checkRequire(t *trial) {
	for _, s := range t.handles() {
		for class := s.Caps().Class + 1; class <= store.Consensus; class++ {
			r := t.request(t.name(), t.long)
			r.Require = class
			asks := map[string]func() error{"acquire": func() error {
				_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
				return err
			}}
			if w := s; !w.Caps().NoQueue {
				asks["wait"] = func() error {
					_, err := w.Wait(t.Context(), store.WaitRequest{Lease: r}, nil)
					return err
				}
			}
			for what, ask := range asks {
				err := ask()
				if err == nil {
					t.track(r)
				}
				// The class may have been unknown before.
				if has := s.Caps().Class; has < class && !errors.Is(err, store.ErrUnsupported) {
					t.Fatalf("%s with %v in a store that gives %v: got error %v, want one that matches store.ErrUnsupported", what, class, has, err)
				}
			}
		}
	}
}

// checkGrant: a free lock is granted, and every handle sees the holder.
func checkGrant(t *trial) {
	r := t.request(t.name(), t.long)
	g := t.acquire(t.first, r)
	if g.Token >= 1<<53 {
		t.Errorf("token %v does not survive JSON: it is 2^53 or more", g.Token)
	}
	st := t.heldBy(r)
	if st.Token != g.Token {
		t.Errorf("inspect: token %v, want %v as granted", st.Token, g.Token)
	}
	t.sameHolder("inspect", st.Holder, r)
	t.within("inspect", st.ExpiresIn, r.TTL)

	// Other locks are not affected.
	t.acquire(t.other(), t.request(t.name(), t.long))
	t.heldBy(r)
}

// checkBusy: a refusal names the holder and the remaining time, and changes
// nothing.
func checkBusy(t *trial) {
	r := t.request(t.name(), t.long)
	g := t.acquire(t.first, r)
	for _, s := range t.handles() {
		busy := t.refuse(s, t.request(r.Name, t.long))
		if busy.Name != r.Name {
			t.Errorf("busy: names the lock %q, want %q", busy.Name, r.Name)
		}
		t.sameHolder("busy", busy.Holder, r)
		t.within("busy", busy.ExpiresIn, r.TTL)
	}
	if st := t.heldBy(r); st.Token != g.Token {
		t.Errorf("inspect: token %v after refusals, want %v as granted", st.Token, g.Token)
	}
	t.release(t.first, r)
	t.free(r.Name) // no refused attempt has taken it
}

// checkRepeat: repeating an acquire confirms the same lease, so that a lost reply does not
// lose the lock.
func checkRepeat(t *trial) {
	start := t.now()
	r := t.request(t.name(), t.long)
	g := t.acquire(t.first, r)
	for _, s := range t.handles() {
		for _, ttl := range []time.Duration{t.long, t.options.ShortTTL} {
			r.TTL = ttl
			again, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
			if err != nil {
				t.Fatalf("acquire by the owner again: %v", err)
			}
			t.sameToken("acquire by the owner again", again.Token, g.Token)
		}
	}
	t.lasts("asked again with a shorter TTL", r, t.long, start)
	t.sameToken("inspect after asking again", t.heldBy(r).Token, g.Token)
	// All of these are one lease, which one release ends.
	t.release(t.first, r)
	t.free(r.Name)

	// A repeated acquire with a longer TTL extends the lease.
	l := t.acquireShort(t.first)
	l.Lease.TTL = t.long
	start = t.now()
	if _, err := t.first.Acquire(t.Context(), store.AcquireRequest{Lease: l.Lease}); err != nil {
		t.Fatalf("acquire by the owner again with a longer TTL: %v", err)
	}
	t.lasts("asked again with a longer TTL", l.Lease, t.long, start)
}

// sameToken requires the token that a lease was granted with. A quorum store may raise it
// when the owner asks again and gets another node. It never decreases.
func (t *observer) sameToken(what string, got, want fence.Token) {
	if t.first.Caps().Nodes > 1 && got > want {
		return
	}
	if got != want {
		t.Errorf("%s: token %v, want %v as before", what, got, want)
	}
}

// checkTokensRise: every later grant of a lock has a larger token, however the
// earlier lease ended.
func checkTokensRise(t *trial) {
	names := []string{t.name(), t.name(), t.name()}
	last := make(map[string]fence.Token)
	for range 4 {
		for _, s := range t.handles() {
			for _, name := range names {
				r := t.request(name, t.long)
				g := t.acquire(s, r)
				if g.Token <= last[name] {
					t.Fatalf("token %v after a release, want more than %v", g.Token, last[name])
				}
				last[name] = g.Token
				t.release(s, r)
			}
		}
	}
	l := t.acquireShort(t.first)
	t.eventually("a lock left to expire is granted again", func() bool {
		r := t.request(l.Name, t.long)
		g, err := t.other().Acquire(t.Context(), store.AcquireRequest{Lease: r})
		if err != nil {
			if !errors.Is(err, store.ErrBusy) {
				t.Fatalf("acquire until the lease before it expires: %v", err)
			}
			return false
		}
		t.track(r)
		if g.Token <= l.Token {
			t.Fatalf("token %v after an expiry, want more than %v", g.Token, l.Token)
		}
		return true
	})
}

// sameHolder requires h to describe the owner of r as r does.
func (t *observer) sameHolder(what string, h store.Holder, r store.Lease) {
	t.Helper()
	want := store.DecodeHolder(r.Owner, r.Meta)
	if h.Owner != want.Owner || h.Host != want.Host || h.PID != want.PID || h.Purpose != want.Purpose || !h.Since.Equal(want.Since) {
		t.Errorf("%s: holder %+v, want %+v", what, h, want)
	}
}
