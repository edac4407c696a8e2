package redisstore_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// ahead fails the test if a token leads the machine's clock, which is the servers', by more than
// a second.
func ahead(t *testing.T, what string, last fence.Token) {
	t.Helper()
	if lead := time.Until(time.UnixMicro(int64(last))); lead > time.Second {
		t.Errorf("%s: token %d is %v ahead of the clock", what, last, lead)
	}
}

// However many tokens are reserved, none leads the servers' clock by more than a second: the
// clock is the floor of tokens on a server that has lost its counters. Each request gets at
// least one token.
func TestReservedTokensStayNearTheClock(t *testing.T) {
	for _, n := range []int{1, 3} {
		s := open(t, addrs(redistest.StartN(t, n)), nil)
		held := request("a")
		g := acquireSpare(t, s, held, store.MaxSpare)
		last := g.Token + fence.Token(g.Spare)
		for range 200 { // 13 s of tokens
			ahead(t, "acquired and reserved", last)
			d, err := s.ReserveTokens(t.Context(), store.ReserveRequest{Lease: held, Above: last, Count: store.MaxSpare + 1})
			if err != nil {
				t.Fatal(err)
			}
			if d.Token <= last || d.Count < 1 || d.Count > store.MaxSpare+1 {
				t.Fatalf("reserved %+v after %v, want larger tokens", d, last)
			}
			last = d.Token + fence.Token(d.Count) - 1
		}
		ahead(t, "reserved", last)
		for range 50 {
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
				t.Fatal(err)
			}
			held = request("a")
			if g = acquireSpare(t, s, held, store.MaxSpare); g.Token <= last {
				t.Fatalf("granted %+v after %v, want a larger token", g, last)
			}
			last = g.Token + fence.Token(g.Spare)
			ahead(t, "granted", last)
		}
	}
}

// With a counter far ahead of the clock, as after the clock was set back, each grant and each
// reservation gets the next token, and servers with smaller counters are raised to it.
func TestTokensGoOnAfterAStepBack(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), nil)
	last := fence.Token(time.Now().Add(time.Hour).UnixMicro())
	for _, server := range servers[:2] {
		server.Text(t, "SET", "{a}:token", strconv.FormatUint(uint64(last), 10))
	}
	for range 3 {
		held := request("a")
		g := acquireSpare(t, s, held, 8)
		if g.Token != last+1 || g.Spare != 0 {
			t.Fatalf("granted %+v after %v, want the next token and no spare", g, last)
		}
		d, err := s.ReserveTokens(t.Context(), store.ReserveRequest{Lease: held, Above: g.Token, Count: 9})
		if err != nil {
			t.Fatal(err)
		}
		if d.Token != g.Token+1 || d.Count != 1 {
			t.Fatalf("reserved %+v after %v, want the next token only", d, g.Token)
		}
		last = d.Token
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "every server has released it", noLock(t, servers, "a"))
	}
}
