package storetest

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// fault is one way in which a request can be invalid.
type fault struct {
	what  string
	spoil func(r *store.Lease)
}

// faults returns the faults that every method of s that takes a TTL must refuse.
func faults(s *store.Store) []fault {
	bad := []fault{
		{"empty name", func(r *store.Lease) { r.Name = "" }},
		{"name too long", func(r *store.Lease) { r.Name += strings.Repeat("x", store.MaxName-len(r.Name)+1) }},
		{"name of a key of the store", func(r *store.Lease) { r.Name = "leasehold:" + r.Name }},
		{"name of a counter", func(r *store.Lease) { r.Name = "{" + r.Name + "}:token" }},
		{"name of a place in the queue", func(r *store.Lease) { r.Name = "{" + r.Name + "}:place:" + r.Owner }},
		{"empty owner", func(r *store.Lease) { r.Owner = "" }},
		{"owner too long", func(r *store.Lease) { r.Owner = strings.Repeat("x", store.MaxOwner+1) }},
		{"owner with space", func(r *store.Lease) { r.Owner = "a b" }},
		{"owner with break", func(r *store.Lease) { r.Owner = "a\nb" }},
		{"owner with NUL", func(r *store.Lease) { r.Owner = "a\x00" }},
		{"owner not ASCII", func(r *store.Lease) { r.Owner = "ä" }},
		{"meta too long", func(r *store.Lease) { r.Meta = strings.Repeat("x", store.MaxMeta+1) }},
		{"no TTL", func(r *store.Lease) { r.TTL = 0 }},
		{"negative TTL", func(r *store.Lease) { r.TTL = -time.Second }},
		{"most negative TTL", func(r *store.Lease) { r.TTL = math.MinInt64 }},
		{"TTL too short", func(r *store.Lease) { r.TTL = store.MinTTL - 1 }},
	}
	if least := s.Caps().MinTTL; least > store.MinTTL {
		bad = append(bad, fault{"TTL under the minimum", func(r *store.Lease) { r.TTL = least - 1 }})
	}
	if most := s.Caps().MaxTTL; most > 0 {
		bad = append(bad,
			fault{"TTL over the maximum", func(r *store.Lease) { r.TTL = most + 1 }},
			fault{"longest duration as TTL", func(r *store.Lease) { r.TTL = math.MaxInt64 }},
		)
	}
	return bad
}

// checkInvalidAcquire: Acquire refuses invalid requests with ErrInvalid, and they
// leave nothing behind.
func checkInvalidAcquire(t *trial) {
	for _, f := range faults(t.first) {
		good := t.request(t.name(), t.long)
		r := good
		f.spoil(&r)
		_, err := t.first.Acquire(t.Context(), store.AcquireRequest{Lease: r})
		t.invalid("acquire: "+f.what, err)
		if err == nil {
			t.track(r)
			continue
		}
		t.free(good.Name)
		if len(t.list(t.first, good.Name)) != 0 {
			t.Errorf("acquire: %s: list shows %q after the refusal, want no lock", f.what, good.Name)
		}
		// The lock can still be acquired.
		t.acquire(t.other(), good)
		t.release(t.other(), good)
	}
}

// checkInvalidOthers: the other methods refuse invalid requests too.
func checkInvalidOthers(t *trial) {
	start := t.now()
	r := t.request(t.name(), t.long)
	t.acquire(t.first, r)
	for _, s := range t.handles() {
		for _, name := range []string{"", strings.Repeat("x", store.MaxName+1)} {
			_, err := s.Inspect(t.Context(), name)
			t.invalid("inspect", err)
			bad := r
			bad.Name = name
			t.invalid("release", s.Release(t.Context(), store.ReleaseRequest{Lease: bad}))
			t.invalid("renew", t.renew(s, bad))
		}
		for _, owner := range []string{"", "a b", strings.Repeat("x", store.MaxOwner+1)} {
			bad := r
			bad.Owner = owner
			t.invalid("release", s.Release(t.Context(), store.ReleaseRequest{Lease: bad}))
			t.invalid("renew", t.renew(s, bad))
		}
		for _, ttl := range []time.Duration{0, -1, t.least - 1} {
			bad := r
			bad.TTL = ttl
			t.invalid("renew", t.renew(s, bad))
		}
		if most := s.Caps().MaxTTL; most > 0 {
			bad := r
			bad.TTL = most + 1
			t.invalid("renew", t.renew(s, bad))
		}
	}
	t.lasts("after refused requests", r, t.long, start)
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

// invalid requires err to match store.ErrInvalid.
func (t *observer) invalid(what string, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrInvalid) {
		t.Errorf("%s: got error %v, want one that matches store.ErrInvalid", what, err)
	}
}
