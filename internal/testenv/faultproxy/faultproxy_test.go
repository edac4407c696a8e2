package faultproxy

import (
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPass(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	a, b := dial(t, p), dial(t, p)
	a.talk("one")
	b.talk("two")
	a.talk("three")
	p.Await(t, "everything to be counted", func(s Stats) bool {
		return s == Stats{
			Accepted: 2, Open: 2,
			Requests: Flow{Received: 14, Passed: 14},
			Replies:  Flow{Received: 23, Passed: 23},
		}
	})
}

func TestPassForwardsTheEndOfEachSide(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	a := dial(t, p)
	a.send("last words")
	a.c.CloseWrite()
	a.expectEnd("re:last words\n") // the server has seen the end, replied, and closed

	b := dial(t, p)
	b.talk("hello")
	e.hangUp()
	b.expectEnd("")
	a.c.Close()
	b.c.Close()
	p.Await(t, "no connection left", func(s Stats) bool { return s.Open == 0 })
}

func TestServerThatIsDown(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	e.close()
	expectRefused(t, p)
}

func TestBlackhole(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	old, idle := dial(t, p), dial(t, p)
	old.talk("before")
	idle.talk("idle")

	p.Blackhole()
	fresh, quiet := dial(t, p), dial(t, p)
	old.send("x")
	fresh.send("y")
	p.Await(t, "both requests to be swallowed", func(s Stats) bool { return s.Requests.Lost == 4 })
	old.expectNothing()
	fresh.expectNothing()
	if got := e.got(); got != "before idle" {
		t.Errorf("the server got %q, want \"before idle\": requests are swallowed", got)
	}

	p.Pass()
	old.expectEnd("") // a stream that has lost bytes cannot go on
	fresh.expectEnd("")
	idle.talk("idle again") // nothing was lost here
	quiet.talk("late")
	dial(t, p).talk("new")
}

func TestBlackholeHidesTheEnd(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	a, b := dial(t, p), dial(t, p)
	a.talk("a")
	b.talk("b")
	p.Blackhole()
	a.c.Close()
	time.Sleep(moment)
	e.mu.Lock()
	ended := e.ended
	e.mu.Unlock()
	if ended != 0 {
		t.Errorf("%d connections ended at the server, want none: the blackhole hides the end", ended)
	}
	e.hangUp()
	b.expectNothing()
	p.Pass()
	b.expectEnd("")
	p.Await(t, "no connection left", func(s Stats) bool { return s.Open == 0 })
}

func TestBlackholeHidesAServerThatIsDown(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	e.close()
	p.Blackhole()
	a := dial(t, p)
	a.expectNothing()
	p.Pass()
	a.expectEnd("")
}

func TestDelayKeepsOrder(t *testing.T) {
	const d = 40 * time.Millisecond
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	a := dial(t, p)
	a.talk("warm")
	p.Delay(d)
	start := time.Now()
	a.send("one")
	a.send("two")
	a.expect("re:one")
	if took := time.Since(start); took < 2*d {
		t.Errorf("a request and its reply took %v, want twice %v at least", took, d)
	}
	a.expect("re:two")

	// Pass delivers delayed messages at once.
	p.Delay(time.Hour)
	a.send("three")
	p.Await(t, "the request to be delayed", func(s Stats) bool { return s.Requests.Held() == 6 })
	p.Pass()
	a.expect("re:three")
}

func TestCut(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	a, b := dial(t, p), dial(t, p)
	a.talk("a")
	b.talk("b")
	if n := p.Cut(); n != 2 {
		t.Errorf("cut %d connections, want 2", n)
	}
	a.expectEnd("")
	b.expectEnd("")
	dial(t, p).talk("new")
}

func TestCutReplyAfter(t *testing.T) {
	for _, n := range []int{0, 1, 5, len("re:hello\n")} {
		e := startEcho(t)
		p := New(t, e.l.Addr().String())
		a, b := dial(t, p), dial(t, p)
		a.talk("before")
		p.CutReplyAfter(n)
		a.send("hello")
		a.expectEnd("re:hello\n"[:n])
		if got := e.got(); got != "before hello" {
			t.Errorf("cut after %d: the server got %q, want \"before hello\"", n, got)
		}
		b.talk("others") // only one reply is cut
		if s := p.Stats(); s.Cut != 1 {
			t.Errorf("cut after %d: %d replies cut, want 1", n, s.Cut)
		}
	}
}

func TestCutReplyAfterSeveralChunks(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	a := dial(t, p)
	p.CutReplyAfter(10)
	a.talk("12345") // the reply has nine bytes
	a.send("67890")
	a.expectEnd("r")
}

func TestCutReplyToPicksItsRequest(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	a, b := dial(t, p), dial(t, p)
	p.CutReplyTo("lock", 2)
	a.talk("ping")
	b.send("take the lock")
	b.expectEnd("re")
	a.talk("lock again")
	p.CutReplyTo("lock", 2)
	p.Pass() // cancels the cut
	a.talk("lock and again")
}

func TestCutRequest(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	a, b := dial(t, p), dial(t, p)
	p.CutRequest("lock")
	a.talk("ping")
	b.send("take the lock")
	b.expectEnd("")
	a.talk("lock again")
	if got := e.got(); got != "ping lock again" {
		t.Errorf("the server got %q, want \"ping lock again\": the request was cut", got)
	}
}

func TestCutReplyWhileTheClientSends(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	a := dial(t, p)
	p.CutReplyTo("first", 4)
	a.send("first")
	p.Await(t, "the cut", func(s Stats) bool { return s.Cut == 1 })
	a.send("second")
	a.send("third") // fails if the second was answered with a reset
	a.c.SetReadDeadline(time.Now().Add(soon))
	if got, err := io.ReadAll(a.r); string(got) != "re:f" || err != nil {
		t.Errorf("got %q, %v; want the cut reply and a plain end", got, err)
	}
}

func TestDropReplies(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	a, idle := dial(t, p), dial(t, p)
	a.talk("before")
	idle.talk("idle")
	p.DropReplies()
	a.send("unheard")
	e.awaitGot(t, "before idle unheard")
	p.Await(t, "the reply to be dropped", func(s Stats) bool { return s.Replies.Lost == 11 })
	p.Release() // no reply is held, and dropped ones stay lost
	a.expectNothing()
	p.Pass()
	a.expectEnd("")
	idle.talk("idle again")
}

func TestHoldReplies(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	a := dial(t, p)
	p.HoldReplies()
	a.send("one")
	p.Await(t, "the reply to be held", func(s Stats) bool { return s.Replies.Held() == 7 })
	if got := e.got(); got != "one" {
		t.Errorf("the server got %q, want \"one\": only replies are held", got)
	}
	a.expectNothing()
	p.Release()
	a.expect("re:one")
	a.send("two") // replies are still held
	p.Await(t, "the next reply to be held", func(s Stats) bool { return s.Replies.Held() == 7 })
	a.expectNothing()
	p.Pass()
	a.expect("re:two")
}

func TestHoldRequestsOutliveTheirClient(t *testing.T) {
	for _, how := range []string{"close", "reset"} {
		e := startEcho(t)
		p := New(t, e.l.Addr().String())
		a := dial(t, p)
		p.HoldRequests()
		a.send("late")
		p.Await(t, "the request to be held", func(s Stats) bool { return s.Requests.Held() == 5 })
		if how == "reset" {
			a.c.SetLinger(0)
		}
		a.c.Close()
		c := dial(t, p)
		c.expectNothing()
		c.c.Close()
		if got := e.got(); got != "" {
			t.Errorf("%s: the server got %q while requests are held, want nothing", how, got)
		}
		p.Release()
		e.awaitGot(t, "late")
		b := dial(t, p) // requests are still held
		b.send("next")
		b.expectNothing()
		p.Pass()
		b.expect("re:next")
		b.c.Close()
		p.Await(t, "the connections to end", func(s Stats) bool { return s.Open == 0 })
	}
}

func TestHoldAllHoldsBothDirections(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	a := dial(t, p)
	p.HoldReplies()
	a.send("one")
	p.Await(t, "the reply to be held", func(s Stats) bool { return s.Replies.Held() == 7 })
	p.HoldAll()
	a.send("two")
	p.Await(t, "the request to be held", func(s Stats) bool { return s.Requests.Held() == 4 })
	a.expectNothing()
	p.Pass()
	a.expect("re:one")
	a.expect("re:two")
}

// What Pass and Release have let go is delivered, even if the mode changes again before it is.
func TestReleasedIsReleased(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	for range 50 {
		a := dial(t, p)
		p.HoldRequests()
		held := p.Stats().Requests
		a.send("x")
		p.Await(t, "the request to be held", func(s Stats) bool { return s.Requests.Received == held.Received+2 })
		p.Pass()
		p.HoldRequests()
		p.Await(t, "the request to be passed", func(s Stats) bool { return s.Requests.Passed == held.Passed+2 })
		p.Pass()
		a.expect("re:x")
		a.c.Close()
	}
}

func TestRefuseNew(t *testing.T) {
	e := startEcho(t)
	p := New(t, e.l.Addr().String())
	old := dial(t, p)
	old.talk("before")
	p.RefuseNew()
	expectRefused(t, p)
	p.Await(t, "the connection to be refused", func(s Stats) bool { return s.Refused == 1 })
	old.talk("still")
	p.Pass()
	dial(t, p).talk("new")
}

// Close ends connections in every mode.
func TestCloseLeavesNoGoroutines(t *testing.T) {
	e := startEcho(t)
	running := goleak.IgnoreCurrent()
	for name, set := range map[string]func(*Proxy){
		"pass":         (*Proxy).Pass,
		"blackhole":    (*Proxy).Blackhole,
		"delay":        func(p *Proxy) { p.Delay(time.Hour) },
		"holdRequests": (*Proxy).HoldRequests,
		"holdReplies":  (*Proxy).HoldReplies,
		"holdAll":      (*Proxy).HoldAll,
		"dropReplies":  (*Proxy).DropReplies,
		"cutReply":     func(p *Proxy) { p.CutReplyAfter(1) },
	} {
		p, err := Listen(e.l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		a := dial(t, p)
		a.talk("before")
		set(p)
		a.send("x")
		dial(t, p).send("y")
		p.Await(t, "all to be received", func(s Stats) bool { return s.Requests.Received == 11 })
		p.Close()
		p.Close()
		if s := p.Stats(); s.Open != 0 || s.Requests.Held() != 0 || s.Replies.Held() != 0 {
			t.Errorf("%s: after Close %d connections are open and bytes are held, want none: %+v", name, s.Open, s)
		}
		if conn, err := net.Dial("tcp", p.Addr()); err == nil {
			conn.Close()
			t.Errorf("%s: a closed proxy accepts connections", name)
		}
	}
	e.close() // ends the goroutines of the server
	if err := goleak.Find(running); err != nil {
		t.Error(err)
	}
}
