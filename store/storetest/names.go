package storetest

import (
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// checkNamesOfAnyBytes: a name may consist of any bytes, up to the limit.
func checkNamesOfAnyBytes(t *trial) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	prefix := t.name() + "/"
	full := store.MaxName - len(prefix)
	for _, n := range []string{
		" ", "with space", "line\nbreak", "\r\n", "tab\t", "nul\x00nul", "\x00", "ünïcödé 锁 🔒", "{braces}", "{}", "}{", "100%", "%s %d", "'single'", `"double"`,
		"`back`", `back\slash`, "a;b--c", "*?[x]", "\xff\xfe\x80", string(all), "../..", "a:b", "$1", "<&>",
		strings.Repeat("x", full), strings.Repeat("\x00", full), strings.Repeat("é", full/2),
	} {
		r := t.request(prefix+n, t.long)
		g := t.acquire(t.first, r)
		st := t.heldBy(r)
		t.sameHolder("inspect", st.Holder, r)
		busy := t.refuse(t.other(), t.request(r.Name, t.long))
		if busy.Name != r.Name {
			t.Errorf("busy: names the lock %q, want %q", busy.Name, r.Name)
		}
		t.listed(t.other(), r.Name, map[string]store.Lease{r.Name: r})
		if err := t.renew(t.first, r); err != nil {
			t.Errorf("renew %q: %v", r.Name, err)
		}
		t.release(t.first, r)
		t.free(r.Name)
		next := t.request(r.Name, t.long)
		if again := t.acquire(t.other(), next); again.Token <= g.Token {
			t.Errorf("token %v of %q, want more than %v", again.Token, r.Name, g.Token)
		}
		t.release(t.other(), next)
	}
}

// checkNamesAlike: names that differ in one byte are different locks, even if an engine's
// collation considers them equal. All are held at once.
func checkNamesAlike(t *trial) {
	prefix := t.name() + "/"
	long := strings.Repeat("x", store.MaxName-len(prefix)-1)
	for _, n := range []string{
		"", "a", "A", "a ", " a", "a\x00", "a\x00b", "a\n", "á", "a\u0301", "ａ", "ß", "ss", "a/", "a//", "{a}", "{a", "a}", "a:token", "{a}:token", "1", "01", "1.0", "1e0",
		"a/b", "a_b", "a-b", "a.b", "a:b", "a b", "a\\b", "a|b", "a%2Fb", "a%2fb", "a%252Fb", "a+b", "a%20b", "a=b", "a@b", "a\tb",
		long + "1", long + "2", long,
	} {
		r := t.request(prefix+n, t.long)
		t.acquire(t.first, r)
	}
	for _, r := range t.held {
		t.heldBy(r)
	}
}

// checkOwnersAlike: owners that differ in one byte are different owners.
func checkOwnersAlike(t *trial) {
	lower := t.request(t.name(), t.long)
	lower.Owner = "a" + strings.ToLower(lower.Owner)
	t.acquire(t.first, lower)
	for _, owner := range []string{strings.ToUpper(lower.Owner), lower.Owner + "a", lower.Owner[:len(lower.Owner)-1], lower.Owner + "%", "%", "*", lower.Owner[:4] + "*"} {
		r := lower
		r.Owner = owner
		t.refuse(t.other(), r)
		t.notHeld("renew by an owner that is alike", t.renew(t.other(), r))
		t.notHeld("release by an owner that is alike", t.other().Release(t.Context(), store.ReleaseRequest{Lease: r}))
		t.heldBy(lower)
	}

	// An owner of the greatest length, with all characters that are allowed.
	var printable []byte
	for c := byte('!'); c <= '~'; c++ {
		printable = append(printable, c)
	}
	long := t.request(t.name(), t.long)
	long.Owner = (long.Owner + strings.Repeat(string(printable), 3))[:store.MaxOwner]
	t.acquire(t.first, long)
	st := t.heldBy(long)
	t.sameHolder("inspect", st.Holder, long)
	twin := long
	twin.Owner = twin.Owner[:store.MaxOwner-1] + "!"
	t.refuse(t.other(), twin)
	t.release(t.other(), long)
}

// checkMeta: a store keeps Lease.Meta and returns it unchanged. Nothing depends on it.
func checkMeta(t *trial) {
	for _, meta := range []string{
		"",
		"{}",
		"not JSON at all",
		`{"host":"h","pid":`,
		store.Holder{Host: "höst", PID: 1, Purpose: "quotes \" ' ` and \\ and \x00 and 锁"}.Encode(),
		store.Holder{Purpose: "two\nlines %s"}.Encode(),
		store.Holder{Purpose: strings.Repeat("p", store.MaxMeta-len(store.Holder{Purpose: "p"}.Encode())+1)}.Encode(),
	} {
		r := t.request(t.name(), t.long)
		r.Meta = meta
		g := t.acquire(t.first, r)
		t.sameHolder("inspect", t.heldBy(r).Holder, r)
		t.sameHolder("busy", t.refuse(t.other(), t.request(r.Name, t.long)).Holder, r)

		// A repeated acquire and a renewal send it again.
		again, err := t.other().Acquire(t.Context(), store.AcquireRequest{Lease: r})
		if err != nil {
			t.Fatalf("acquire by the owner again: %v", err)
		}
		t.sameToken("acquire by the owner again", again.Token, g.Token)
		t.sameHolder("inspect after asking again", t.heldBy(r).Holder, r)
		if err := t.renew(t.first, r); err != nil {
			t.Fatalf("renew with meta %q: %v", meta, err)
		}
		t.release(t.first, r)
		t.free(r.Name)
	}
}
