package zkstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// A name that other clients can write is its own node, and no two names share a node.
func TestNodesOfNames(t *testing.T) {
	for name, want := range map[string]string{
		"invoices": "invoices", "a b": "a b", "a/b": "a%2Fb", "100%": "100%25", ".": "%2E", "..": "%2E%2E", "...": "...",
		"\x00\n\xff": "%00%0A%FF", "é": "%C3%A9", "%2E": "%252E",
	} {
		if got := escape(name); got != want {
			t.Errorf("the node of %q is %q, want %q", name, got, want)
		}
		if got, ok := unescape(want); !ok || got != name {
			t.Errorf("node %q is that of %q, %v, want %q", want, got, ok, name)
		}
	}
	for _, other := range []string{"%", "%2", "%zz", "%2f", "%61", ".", "é"} {
		if name, ok := unescape(other); ok {
			t.Errorf("node %q is that of %q, which has another", other, name)
		}
	}
}

// Places of all clients are in one order. Curator writes its ids with hyphens, kazoo has
// another word before the number.
func TestOrderOfPlaces(t *testing.T) {
	ours := placeName(newMark("owner"), rule.Mutex, 1) + "0000000003"
	names := []string{
		ours,
		"_c_0123456789abcdef0123456789abcdef-lock-0000000002", // go-zookeeper
		"_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000004",
		"0123456789abcdef0123456789abcdef__lock__0000000001",
		"_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000000",
		"config", "lock-", "lock-12",
	}
	q := queueOf(names)
	var got []string
	for _, c := range q {
		got = append(got, c.digits()[9:])
	}
	if want := "0 1 2 3 4"; strings.Join(got, " ") != want {
		t.Fatalf("the order is %q, want %q", got, want)
	}
	if me := q.find(ours); me != 3 || q.owns(me).Verdict != rule.Busy || q.owns(me).Position != 3 || q.owns(0).Verdict != rule.Granted {
		t.Errorf("our place is %d, and has %+v, want 3, behind 3 others", me, q.owns(me))
	}
	if !q[3].isOf(ownerMark("owner")) || q[3].isOf(ownerMark("other")) || q[2].isOf(ownerMark("owner")) {
		t.Error("the name of our place does not show its owner")
	}
}

// The number of a place begins again at the smallest after the largest.
func TestOrderOfPlacesWhereNumbersBeginAgain(t *testing.T) {
	q := queueOf([]string{"_c_x-lock--2147483647", "_c_x-lock-2147483647", "_c_x-lock--2147483648", "_c_x-lock-2147483646"})
	var got []int32
	for _, c := range q {
		got = append(got, c.seq)
	}
	if want := []int32{2147483646, 2147483647, -2147483648, -2147483647}; !slices.Equal(got, want) {
		t.Errorf("the order is %d, want %d", got, want)
	}
	if d := q[2].digits(); d != "-2147483648" {
		t.Errorf("the digits are %q, want -2147483648", d)
	}
}

// A place that is made anew keeps its number.
func TestNameOfAMovedPlace(t *testing.T) {
	for _, digits := range []string{"0000000007", "-2147483648"} {
		c, ok := parseChild(placeName(newMark("o"), rule.Mutex, 1) + digits)
		if !ok || c.digits() != digits {
			t.Fatalf("%q has the number %q, %v", c.name, c.digits(), ok)
		}
		moved, ok := parseChild(placeName(newMark("o"), rule.Mutex, 1) + c.digits())
		if !ok || moved.seq != c.seq || moved.name == c.name {
			t.Errorf("%q became %q", c.name, moved.name)
		}
	}
}

// A place whose zxid leaves no room for tokens is refused and removed.
func TestEpochsAreBounded(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	for _, zxid := range []int64{0, -1, maxEpoch << 32} {
		p, err := s.enqueue(t.Context(), request("late epoch", 20*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.named(p.dir+"/"+p.name, zxid); err == nil || !strings.Contains(err.Error(), "epoch") {
			t.Errorf("a place with the zxid %#x: %v, want an error that names the epoch", zxid, err)
		}
		if st, err := s.Inspect(t.Context(), "late epoch"); err != nil || st.Held {
			t.Errorf("inspect: %+v, %v, want no place", st, err)
		}
	}
}
