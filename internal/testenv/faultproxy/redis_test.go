package faultproxy

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// A SET whose reply is lost has taken effect. This is what the proxy is for.
func TestLostReplyOfARealServer(t *testing.T) {
	s := redistest.Start(t)
	p := New(t, s.Addr())
	a := dial(t, p)
	for i, lose := range []func(){
		func() { p.CutReplyTo("lock", 3) },
		p.HoldReplies,
		p.DropReplies,
	} {
		key := fmt.Sprintf("lock%d", i)
		lose()
		a.send("SET " + key + " me NX PX 60000")
		p.Await(t, "the reply to come", func(st Stats) bool { return st.Replies.Received == int64(i+1)*5 })
		if got := s.Text(t, "GET", key); got != "me" {
			t.Errorf("%s = %q although only its reply was lost, want me", key, got)
		}
		switch i {
		case 0:
			a.expectEnd("+OK")
			a = dial(t, p)
		case 1:
			a.expectNothing()
			p.Release()
			a.expect("+OK")
		case 2:
			a.expectNothing()
		}
	}
}

func TestRequestThatArrivesAfterItsClientGaveUp(t *testing.T) {
	s := redistest.Start(t)
	p := New(t, s.Addr())
	a := dial(t, p)
	p.HoldRequests()
	a.send("SET lock me NX PX 60000")
	p.Await(t, "the request to be held", func(st Stats) bool { return st.Requests.Held() > 0 })
	a.c.Close()
	if keys := s.Keys(t); len(keys) != 0 {
		t.Fatalf("keys while the request is held: %q, want none", keys)
	}
	p.Pass()
	p.Await(t, "the connection to end", func(st Stats) bool { return st.Open == 0 })
	if got := s.Text(t, "GET", "lock"); got != "me" {
		t.Errorf("lock = %q after the late arrival of the request, want me", got)
	}
}
