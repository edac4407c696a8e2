package redisstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// TestListEnds checks that a listing ends although the server's cursors go in a circle,
// says so, and returns what was found.
func TestListEnds(t *testing.T) {
	n := 0
	p := &parrot{reply: "*6\r\n$1\r\n0\r\n$0\r\n\r\n:1\r\n$6\r\nann {}\r\n:5000\r\n$1\r\n7\r\n", scan: func() string {
		n++
		cursor, key := strconv.Itoa(1+n%2), fmt.Sprintf("{lock%08d}:token", n)
		return fmt.Sprintf("*2\r\n$%d\r\n%s\r\n%s", len(cursor), cursor, array(key))
	}}
	s := open(t, []string{p.listen(t)}, nil)
	list, err := s.List(t.Context(), "")
	if !errors.Is(err, store.ErrIncomplete) || !strings.Contains(fmt.Sprint(err), "SCAN") || !strings.Contains(fmt.Sprint(err), "127.0.0.1:") {
		t.Errorf("list: %v, want an error that says which server's SCAN does not end", err)
	}
	if len(list) == 0 || list[0].Name != "lock00000001" {
		t.Errorf("listed %v, want what was found", list)
	}
}

// TestListOfMany checks that a listing of more locks than one step inspects has all that are
// held, in order, with the tokens of their grants.
func TestListOfMany(t *testing.T) {
	const locks = 1200
	for _, n := range []int{1, 3} {
		servers := redistest.StartN(t, n)
		s := open(t, addrs(servers), nil)
		tokens := map[string]fence.Token{}
		for i := range locks {
			r := request(fmt.Sprintf("lock%04d", i))
			g := acquire(t, s, r)
			if i%3 == 0 {
				tokens[r.Name] = g.Token
			} else if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
				t.Fatal(err)
			}
		}
		for _, server := range servers { // a key that is no lock is left out
			server.Text(t, "RPUSH", "lock0001", "x")
		}
		list, err := s.List(t.Context(), "lock")
		if err != nil || len(list) != len(tokens) {
			t.Fatalf("%d servers: listed %d, %v, want %d", n, len(list), err, len(tokens))
		}
		if !slices.IsSortedFunc(list, func(a, b store.State) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%d servers: the list is not sorted", n)
		}
		for _, state := range list {
			if !state.Held || state.Token != tokens[state.Name] || state.ExpiresIn <= 0 || state.Holder.Host != "h" || n > 1 && len(state.Nodes) != n {
				t.Fatalf("%d servers: %+v, want token %v", n, state, tokens[state.Name])
			}
		}
		before := sent(t, servers[0])
		if _, err := s.List(t.Context(), "lock"); err != nil {
			t.Fatal(err)
		}
		// One SCAN reads a thousand keys, and one step inspects 256 locks.
		if asked := sent(t, servers[0]) - before; asked > 30 {
			t.Errorf("%d servers: listing %d locks took %d commands, want at most 30", n, locks, asked)
		}
	}
}

// sent returns how many of the commands that a listing uses the server has run.
func sent(t *testing.T, server *redistest.Server) int {
	return calls(t, server, "eval") + calls(t, server, "evalsha") + calls(t, server, "scan")
}

// TestTokenOfTheGrant checks that a lock is shown with the token that its holder was
// granted.
func TestTokenOfTheGrant(t *testing.T) {
	for _, n := range []int{1, 3} {
		servers := redistest.StartN(t, n)
		s := open(t, addrs(servers), nil)
		r := request("a")
		r.Meta = store.Holder{Host: "h", PID: 1}.Encode()
		g := acquire(t, s, r)
		list, err := s.List(t.Context(), "")
		if err != nil || len(list) != 1 || list[0].Token != g.Token {
			t.Errorf("%d servers: listed as %+v, %v, want token %v", n, list, err, g.Token)
		}
		if st := inspect(t, s, "a"); st.Token != g.Token {
			t.Errorf("%d servers: inspect shows token %v, want %v", n, st.Token, g.Token)
		}
	}
}
