package quorum

import "testing"

// A grant has the tokens below its own that all nodes of its majority have reserved. A grant
// that is reported twice loses none of them.
func TestReservedTokens(t *testing.T) {
	for _, c := range []struct {
		what   string
		events []Event
		token  uint64
		want   uint64
	}{
		{"all nodes reserved as many", []Event{
			{Kind: Yes, Op: Acquire, Node: 0, Token: 100, Reserved: 8},
			{Kind: Yes, Op: Acquire, Node: 1, Token: 100, Reserved: 8},
		}, 100, 8},
		{"one node reserved fewer", []Event{
			{Kind: Yes, Op: Acquire, Node: 0, Token: 100, Reserved: 3},
			{Kind: Yes, Op: Acquire, Node: 1, Token: 100, Reserved: 8},
		}, 100, 3},
		{"a node with a smaller token confirms the larger one", []Event{
			{Kind: Yes, Op: Acquire, Node: 0, Token: 100, Reserved: 5},
			{Kind: Yes, Op: Acquire, Node: 1, Token: 90, Reserved: 2},
			{Kind: Yes, Op: Confirm, Node: 1, Token: 100},
		}, 100, 2},
		{"reported twice", []Event{
			{Kind: Yes, Op: Acquire, Node: 0, Token: 100, Reserved: 8},
			{Kind: PushGranted, Op: Acquire, Node: 0, Token: 100, From: waitStart},
			{Kind: Yes, Op: Acquire, Node: 1, Token: 100, Reserved: 8},
		}, 100, 8},
		{"reported twice, after the counter was raised", []Event{
			{Kind: Yes, Op: Acquire, Node: 0, Token: 90, Reserved: 8},
			{Kind: PushGranted, Op: Acquire, Node: 0, Token: 100, From: waitStart},
			{Kind: Yes, Op: Acquire, Node: 1, Token: 100, Reserved: 8},
		}, 100, 0},
	} {
		w := newWaiting(t, 3)
		for i, e := range c.events {
			w.step(1+i, e)
		}
		if w.verdict(Won); w.a.Token() != c.token || w.a.Reserved() != c.want {
			t.Errorf("%s: token %d with %d reserved below it, want %d with %d", c.what, w.a.Token(), w.a.Reserved(), c.token, c.want)
		}
	}
}
