package zkstore

import (
	"slices"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// The name of a place shows its kind and its weight, also if Curator has written it.
func TestKindsOfPlaces(t *testing.T) {
	for _, c := range []struct {
		spec   rule.Spec
		weight int64
	}{
		{rule.Mutex, 1}, {rule.ReadWrite, 1}, {rule.ReadWrite, rule.ReadWriteLimit}, {rule.ReadWrite, 2},
		{rule.Semaphore(5), 1}, {rule.Semaphore(5), 5}, {rule.Semaphore(1 << 40), 3}, {rule.Spec{Limit: 3, Shared: true}, 2},
	} {
		for _, digits := range []string{"0000000007", "-2147483648"} {
			p, ok := parseChild(placeName(newMark("o"), c.spec, c.weight) + digits)
			if !ok || p.spec != c.spec || p.weight != c.weight || p.digits() != digits || !p.isOf(ownerMark("o")) {
				t.Errorf("%+v has the place %+v, %v", c, p, ok)
			}
		}
	}
	for name, want := range map[string]numbered{
		"_c_01234567-89ab-cdef-0123-456789abcdef-__READ__0000000004": {spec: rule.ReadWrite, weight: 1},
		"_c_01234567-89ab-cdef-0123-456789abcdef-__WRIT__0000000004": {spec: rule.ReadWrite, weight: rule.ReadWriteLimit},
		"_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000004":    {spec: rule.Mutex, weight: 1},
		"_c_0123456789abcdef0123456789abcdef-lock-0000000004":        {spec: rule.Mutex, weight: 1},
		"0123456789abcdef0123456789abcdef__lock__0000000004":         {spec: rule.Mutex, weight: 1},
		"x-6of5-lock-0000000004":                                     {spec: rule.Mutex, weight: 1},
		"x-02of5-lock-0000000004":                                    {spec: rule.Mutex, weight: 1},
		"x-0of0-lock-0000000004":                                     {spec: rule.Mutex, weight: 1},
	} {
		if p, ok := parseChild(name); !ok || p.spec != want.spec || p.weight != want.weight {
			t.Errorf("%s is read as %+v (%v), want %v of weight %d", name, p, ok, want.spec, want.weight)
		}
	}
}

// A thread that writes and reads in Curator has two places with one number, and stays the
// writer.
func TestCuratorsWriterThatReads(t *testing.T) {
	q := queueOf([]string{
		"_c_01234567-89ab-cdef-0123-456789abcdef-__READ__0000000004",
		"_c_11234567-89ab-cdef-0123-456789abcdef-__WRIT__0000000004",
		"_c_21234567-89ab-cdef-0123-456789abcdef-__WRIT__0000000005",
	})
	if q[0].needsOthers() || q.holders() != 1 || q[1:].holders() != 1 || q[2:].holders() != 1 {
		t.Errorf("the order is %+v, want the writer first, and one holder at a time", q)
	}
}

// Few waiters watch one place, and none misses its turn: whichever place ends, the waiters
// whose turn it then is are notified, directly or by a waiter before them.
func TestHurdles(t *testing.T) {
	read, write := numbered{spec: rule.ReadWrite, weight: 1}, numbered{spec: rule.ReadWrite, weight: rule.ReadWriteLimit}
	mutex := numbered{spec: rule.Mutex, weight: 1}
	permits := func(n int64) numbered { return numbered{spec: rule.Semaphore(3), weight: n} }
	for _, c := range []struct {
		what string
		q    queue
		want string // the hurdle of each waiter: a number, or * for any place
	}{
		{"mutex", queue{mutex, mutex, mutex}, "01"},
		{"readers behind a writer", queue{write, read, read, read}, "000"},
		{"readers behind a waiting writer", queue{read, read, write, read, read}, "122"},
		{"readers behind two writers", queue{write, write, read, read}, "011"},
		{"permits", queue{permits(1), permits(1), permits(1), permits(1), permits(1)}, "*3"},
		{"one holder of all permits", queue{permits(3), permits(1), permits(1)}, "01"},
		{"all permits are wanted", queue{permits(1), permits(1), permits(3), permits(1)}, "12"},
		{"a heavy waiter", queue{permits(1), permits(1), permits(2), permits(1)}, "*2"},
	} {
		for i := range c.q {
			c.q[i].name = string(rune('0' + i))
		}
		var got []byte
		for i := c.q.holders(); i < len(c.q); i++ {
			got = append(got, (c.q.hurdleOf(i) + "*")[0])
		}
		if string(got) != c.want {
			t.Errorf("%s: the hurdles are %s, want %s", c.what, got, c.want)
		}
	}
}

// A holder of a semaphore gets the smallest free slot. The record of a place has the slots of
// the holders before it.
func TestSlotsBehindOthers(t *testing.T) {
	place := func(seq int32) numbered { return numbered{seq: seq, spec: rule.Semaphore(4), weight: 1} }
	first := record{}.first(place(1), 1)
	second := record{}.behind(first, queue{place(1), place(2)}, 1)
	third := record{}.behind(second, queue{place(1), place(2), place(3)}, 2)
	fourth := record{}.behind(third, queue{place(2), place(3), place(4)}, 2)
	for i, r := range []record{first, second, third, fourth} {
		want := []int64{0, 1, 2, 0}[i]
		if got := r.slot(place(int32(i + 1))); got != want || !r.Agreed {
			t.Errorf("place %d has slot %d, want %d: %+v", i+1, got, want, r)
		}
	}
	if want := []seat{{2, 1}, {3, 2}, {4, 0}}; !slices.Equal(fourth.Seats, want) {
		t.Errorf("the slots are %v, want %v", fourth.Seats, want)
	}
}

// Holders that have not taken a slot yet, because their processes are stopped, are shown
// with the slots that they will take. Readers are shown with the token that they will share.
func TestHoldersThatHaveNotAgreedAreShown(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	native := connect(t)
	for name, kind := range map[string]store.Kind{"slots-to-take": store.Semaphore(3), "token-to-share": store.ReadWrite} {
		first := request(name, 10*time.Second)
		first.Kind, first.Weight = kind, 1
		g := mustAcquire(t, s, first)
		for range 2 {
			l := request(name, 10*time.Second)
			l.Kind, l.Weight = kind, 1
			place := DefaultBase + "/" + name + "/" + placeName(newMark(l.Owner), specOf(kind), 1)
			if _, err := native.Create(place, recordOf(l).encode(), gozk.FlagEphemeralSequential, gozk.WorldACL(gozk.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		st, err := s.Inspect(t.Context(), name)
		if err != nil || len(st.Holders) != 3 {
			t.Fatalf("%+v, %v, want three holders", st, err)
		}
		slots := make(map[int64]bool)
		for _, h := range st.Holders {
			slots[h.Slot] = true
			if kind.Shared && h.Token != g.Token {
				t.Errorf("a reader is shown with token %v beside %v", h.Token, g.Token)
			}
			if !kind.Shared && h.Slot >= 3 {
				t.Errorf("a holder is shown with slot %d, want one below 3", h.Slot)
			}
		}
		if len(slots) != 3 {
			t.Errorf("three holders are shown with the slots %v, want three of them", slots)
		}
	}
}
