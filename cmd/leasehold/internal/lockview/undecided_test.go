package lockview

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

// undecidedState is a lock over three servers that may be held.
func undecidedState(leases ...store.Holding) store.State {
	return store.State{Name: "a", Undecided: leases, Nodes: []store.NodeOutcome{
		{Node: "a:1", Outcome: store.Taken, Holder: store.Holder{Owner: "o"}, ExpiresIn: 12 * time.Second},
		{Node: "b:1", Outcome: store.Absent},
		{Node: "c:1", Outcome: store.TimedOut, Err: errors.New("no answer in time")},
	}}
}

// A lease that may be held is shown with its holder, its token and the longest that it can last,
// and with the server that does not answer. It is not shown as nobody's.
func TestUndecidedIsShown(t *testing.T) {
	now := time.Unix(1e9, 0)
	h := store.Holding{Holder: store.Holder{Owner: "o", Host: "h", PID: 7}, Token: 17, ExpiresIn: 12 * time.Second, Weight: 1}
	reader := store.Holding{Holder: store.Holder{Owner: "r"}, Token: 18, ExpiresIn: time.Second, Weight: 1, Kind: store.ReadWrite}
	var b strings.Builder
	if err := WriteState(&b, undecidedState(h, reader), false, now); err != nil {
		t.Fatal(err)
	}
	want := "lock            a\n" +
		"may be held by  h pid 7\n" +
		"owner           o\n" +
		"expires         in at most 12s unless renewed\n" +
		"token           17\n" +
		"may be held by  r, reader\n" +
		"owner           r\n" +
		"expires         in at most 1s unless renewed\n" +
		"token           18\n" +
		"undecided       no answer from c:1 (timed out), on which it depends\n" +
		"nodes           a:1: taken by o\n" +
		"                b:1: absent\n" +
		"                c:1: timed out: no answer in time\n"
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := writeTable(&b, []store.State{undecidedState(h, reader)}, now); err != nil {
		t.Fatal(err)
	}
	want = "NAME  KIND    HOLDER                 HELD FOR  EXPIRES IN  WAITERS  TOKEN\n" +
		"a     mutex   h pid 7 (may hold it)  -         12s         -        17\n" +
		"a     reader  r (may hold it)        -         1s                   18\n"
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	permit := store.Holding{Holder: store.Holder{Owner: "p"}, Token: 19, ExpiresIn: -1, Weight: 2, Slot: 1, Kind: store.Semaphore(3)}
	j := JSON(undecidedState(h, reader, permit))
	got, err := json.Marshal(struct {
		Held      bool                  `json:"held"`
		Undecided []statejson.Undecided `json:"undecided"`
	}{j.Held, j.Undecided})
	if err != nil {
		t.Fatal(err)
	}
	want = `{"held":false,"undecided":[` +
		`{"owner":"o","host":"h","pid":7,"expires_in_ms":12000,"token":17,"kind":"mutex"},` +
		`{"owner":"r","expires_in_ms":1000,"token":18,"kind":"read-write","slot":0,"mode":"reader"},` +
		`{"owner":"p","expires_in_ms":null,"token":19,"kind":"semaphore","permits":3,"slot":1,"weight":2}]}`
	if string(got) != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	s := undecidedState(h)
	s.Broken = &store.Broken{Owner: "o", Token: 17}
	if text := brokenText(s); !strings.HasPrefix(text, "this lease (token 17)") {
		t.Errorf("%q, want it to be about this lease", text)
	}
}

// A lease that is undecided is no change for watch, except at the first look.
func TestWatchOfUndecidedLeases(t *testing.T) {
	of := func(owner string) store.Holding { return store.Holding{Holder: store.Holder{Owner: owner}} }
	held := func(owner string) store.State {
		return store.State{Name: "a", Held: true, Holder: of(owner).Holder}
	}
	free := store.State{Name: "a"}
	for _, c := range []struct {
		name  string
		looks []store.State
		want  string
	}{
		{"a holder becomes undecided, and is the holder still", []store.State{held("x"), undecidedState(of("x")), held("x")}, "held x"},
		{"a holder becomes undecided, and is none any more", []store.State{held("x"), undecidedState(of("x")), free}, "held x, over x, free"},
		{"a hand-over", []store.State{held("x"), undecidedState(of("x"), of("y")), undecidedState(of("y")), held("y")}, "held x, over x, acquired y"},
		{"a free lock that may be held for a moment", []store.State{free, undecidedState(of("x")), free}, "free"},
		{"a free lock that is acquired", []store.State{free, undecidedState(of("x")), held("x"), free}, "free, acquired x, over x, free"},
		{"undecided at first, then held", []store.State{undecidedState(of("x")), undecidedState(of("x")), held("x")}, "undecided x, held x"},
		{"undecided at first, then free", []store.State{undecidedState(of("x")), free, free}, "undecided x, free"},
		{"undecided at first, then held by another", []store.State{undecidedState(of("x")), held("y"), held("x")}, "undecided x, acquired y, over y, acquired x"},
	} {
		var w Watched
		var got []string
		for i, s := range c.looks {
			for _, change := range w.Changes(s, i == 0) {
				got = append(got, strings.TrimSpace(change.Event+" "+change.Of.Holder.Owner))
			}
		}
		if !slices.Equal(got, strings.Split(c.want, ", ")) {
			t.Errorf("%s: %s, want %s", c.name, strings.Join(got, ", "), c.want)
		}
	}
}
