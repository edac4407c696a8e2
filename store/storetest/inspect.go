package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// checkInspect: Inspect returns the state of a lock and changes nothing.
func checkInspect(t *trial) {
	name := t.name()
	for range 2 {
		for _, s := range t.handles() {
			if st := t.inspect(s, name); !st.Free() || st.Holder != (store.Holder{}) || st.ExpiresIn != 0 {
				t.Fatalf("inspect of a free lock: %+v, want no holder and no expiry", st)
			}
		}
	}
	r := t.request(name, t.long)
	g := t.acquire(t.first, r)
	for range 2 {
		st := t.heldBy(r)
		t.sameHolder("inspect", st.Holder, r)
		t.within("inspect", st.ExpiresIn, r.TTL)
		if st.Token != g.Token {
			t.Errorf("inspect: token %v, want %v as granted", st.Token, g.Token)
		}
	}
	t.release(t.first, r)
	t.free(name)
}

// checkHeldFor: State.HeldFor counts from the grant, however long the holder had to
// wait for it.
func checkHeldFor(t *trial) {
	first := t.request(t.name(), t.long)
	t.acquire(t.first, first)
	r := t.applicant(first.Name, t.long)
	r.Meta = store.Holder{Host: "host-of-the-holder", Since: time.Now().Add(-time.Hour)}.Encode() // as if it had waited for an hour
	w := t.queue(r)[0]
	before := t.now()
	t.release(t.first, first)
	t.gets("a waiter gets the lock", w)
	for _, s := range t.handles() {
		states := append(t.list(s, w.Name), t.inspect(s, w.Name))
		for _, st := range states {
			if most := t.now().Sub(before) + t.resolution + time.Second; st.HeldFor < 0 || st.HeldFor > most {
				t.Errorf("held for %v, want 0s to the %v since the hand-off", st.HeldFor, most)
			}
		}
	}
}

// checkList: List returns the held locks, sorted, and no others.
func checkList(t *trial) {
	prefix := t.name() + "/"
	if list := t.list(t.first, prefix); len(list) != 0 {
		t.Fatalf("list of unused names: %+v, want none", list)
	}
	held := make(map[string]store.Lease)
	tokens := make(map[string]store.Grant)
	for _, n := range []string{"b", "a", "B", "ä", "a/b", "c", "10", "9", "a b"} {
		r := t.request(prefix+n, t.long)
		tokens[r.Name] = t.acquire(t.first, r)
		held[r.Name] = r
	}
	t.release(t.first, held[prefix+"c"])
	delete(held, prefix+"c")
	for _, s := range t.handles() {
		t.listed(s, prefix, held)
		for _, st := range t.list(s, prefix) {
			t.sameHolder("list", st.Holder, held[st.Name])
			t.within("list", st.ExpiresIn, t.long)
			if st.Token != tokens[st.Name].Token {
				t.Errorf("list: token %v of %q, want %v as granted", st.Token, st.Name, tokens[st.Name].Token)
			}
		}
		all := make(map[string]bool)
		for _, st := range t.list(s, "") {
			all[st.Name] = true
		}
		for name := range held {
			if !all[name] {
				t.Errorf("list of all locks: misses %q", name)
			}
		}
	}
}

// checkListPrefix: List compares the prefix byte by byte, even if it has a
// meaning as a pattern in the engine.
func checkListPrefix(t *trial) {
	prefix := t.name() + "/"
	held := make(map[string]store.Lease)
	for _, n := range []string{
		"a*1", "aX1", "a?1", "a%1", "a_1", "a[X]1", "a\\1", "a\\\\1", "A*1", "a{1}", "a'1", "a\"1", "a 1", "a\n1", "é1", "e1", "a:1", "a-1", "a^1",
	} {
		r := t.request(prefix+n, t.long)
		t.acquire(t.first, r)
		held[r.Name] = r
	}
	for _, s := range t.handles() {
		for _, p := range []string{"", "a", "A", "a*", "a?", "a%", "a_", "a[X]", "a[", "a\\", "a\\\\", "a{", "a'", "a\"", "a ", "a\n", "é", "\xc3", "e", "a:", "a-", "a^", "none"} {
			want := make(map[string]store.Lease)
			for name, r := range held {
				if strings.HasPrefix(name, prefix+p) {
					want[name] = r
				}
			}
			t.listed(s, prefix+p, want)
		}
	}
}

// list returns what s lists under prefix, and requires the locks to be held and sorted.
func (t *observer) list(s *store.Store, prefix string) []store.State {
	t.Helper()
	list, err := s.List(t.Context(), prefix)
	if err != nil {
		t.Fatalf("list %q: %v", prefix, err)
	}
	for i, st := range list {
		t.decided("list", st)
		if !st.Held || st.Holder.Owner == "" {
			t.Fatalf("list %q: %q has no holder: %+v", prefix, st.Name, st)
		}
		if i > 0 && st.Name <= list[i-1].Name {
			t.Fatalf("list %q: %q comes after %q, want them sorted", prefix, st.Name, list[i-1].Name)
		}
	}
	return list
}

// listed requires s to list exactly the locks in want under prefix.
func (t *observer) listed(s *store.Store, prefix string, want map[string]store.Lease) {
	t.Helper()
	var got, missing []string
	for _, st := range t.list(s, prefix) {
		got = append(got, st.Name)
		if r, ok := want[st.Name]; !ok {
			t.Errorf("list %q: shows %q, which is not held or has another prefix", prefix, st.Name)
		} else if st.Holder.Owner != r.Owner {
			t.Errorf("list %q: %q is held by %q, want %q", prefix, st.Name, st.Holder.Owner, r.Owner)
		}
	}
	for name := range want {
		if !slices.Contains(got, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("list %q: misses %q", prefix, missing)
	}
}
