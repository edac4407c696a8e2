package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// together calls several functions, and sends their requests to a node at one time.
func together(t *testing.T, n *node.Node, do ...func()) {
	t.Helper()
	resume, ok := n.TryHold()
	for ; !ok; resume, ok = n.TryHold() { // another goroutine is about to finish
		time.Sleep(time.Millisecond)
	}
	n.Mu.Lock()
	before := n.Waiting.Len()
	n.Mu.Unlock()
	var all sync.WaitGroup
	for i, f := range do {
		all.Go(f)
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			n.Mu.Lock()
			enqueued := n.Waiting.Len()
			n.Mu.Unlock()
			if enqueued > before+i {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("a request was not enqueued within 20s")
			}
		}
	}
	resume()
	all.Wait()
}

// calls returns how often a command was called: evalsha for scripts by hash, eval for their text.
// It is empty for never.
func calls(t *testing.T, s *redistest.Server, command string) string {
	t.Helper()
	_, after, _ := strings.Cut(s.Text(t, "INFO", "commandstats"), "cmdstat_"+command+":calls=")
	count, _, _ := strings.Cut(after, ",")
	return count
}

// stepsStore returns a store on one server.
func stepsStore(t *testing.T, url string) *engine {
	t.Helper()
	s, err := openEngine(t.Context(), url, &Options{NodeTimeout: 20 * time.Second}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func stepsLease(name string) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), TTL: 30 * time.Second}
}

// Calls that wait for a node together are sent in one command, and each has its own answer:
// one that fails does not make others fail.
func TestCallsThatWaitTogetherAreOneCommand(t *testing.T) {
	server := redistest.Start(t)
	s := stepsStore(t, "redis://"+server.Addr())
	held, last := stepsLease("held"), stepsLease("last")
	for _, l := range []store.Lease{held, last} {
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
	}
	server.Text(t, "RPUSH", "damaged", "x")
	server.Text(t, "CONFIG", "RESETSTAT")
	var errs [6]error
	var grant store.Grant
	take := func(i int, l store.Lease) func() {
		return func() { _, errs[i] = s.Acquire(t.Context(), store.AcquireRequest{Lease: l}) }
	}
	together(t, s.Nodes[0],
		take(0, stepsLease("free")), take(1, stepsLease("damaged")), take(2, stepsLease("held")),
		func() { errs[3] = s.Renew(t.Context(), []store.Lease{held})[0] },
		func() { errs[4] = s.Release(t.Context(), store.ReleaseRequest{Lease: last}) },
		func() { grant, errs[5] = s.Acquire(t.Context(), store.AcquireRequest{Lease: stepsLease("last")}) },
	)
	var busy *store.BusyError
	for i, err := range errs {
		switch {
		case i == 1 && (err == nil || !strings.Contains(err.Error(), "WRONGTYPE")):
			t.Errorf("acquire a damaged lock: %v, want WRONGTYPE", err)
		case i == 2 && !errors.As(err, &busy):
			t.Errorf("acquire a held lock: %v, want a *BusyError", err)
		case i != 1 && i != 2 && err != nil:
			t.Errorf("call %d: %v", i, err)
		}
	}
	if grant.Token == 0 {
		t.Error("the lock that was released earlier in the same list was granted without a token")
	}
	if n := calls(t, server, "evalsha"); n != "1" {
		t.Errorf("%s calls of scripts, want one", n)
	}
}

// A call has a limited number of steps, so that it does not block a server for long.
func TestListsAreBounded(t *testing.T) {
	server := redistest.Start(t)
	s := stepsStore(t, "redis://"+server.Addr())
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: stepsLease("first")}); err != nil {
		t.Fatal(err)
	}
	server.Text(t, "CONFIG", "RESETSTAT")
	var do []func()
	for i := range 2*script.MaxSteps + 1 {
		l := stepsLease(fmt.Sprint(i))
		do = append(do, func() {
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
				t.Error(err)
			}
		})
	}
	together(t, s.Nodes[0], do...)
	if n := calls(t, server, "evalsha"); n != "3" {
		t.Errorf("%s calls of scripts, want three", n)
	}
}

// A server that does not have the script of lists gets it, and no call fails.
func TestListOnAServerThatForgotTheScript(t *testing.T) {
	server := redistest.Start(t)
	s := stepsStore(t, "redis://"+server.Addr())
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: stepsLease("first")}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var do []func()
		for range 40 {
			l := stepsLease(store.NewOwner())
			do = append(do, func() {
				if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
					t.Error(err)
				}
			})
		}
		server.Text(t, "SCRIPT", "FLUSH")
		server.Text(t, "CONFIG", "RESETSTAT")
		together(t, s.Nodes[0], do...)
		if n := calls(t, server, "eval"); n != "2" {
			t.Errorf("%s texts of scripts were sent, want one of lists and one of a single acquire", n)
		}
		server.Text(t, "CONFIG", "RESETSTAT")
		together(t, s.Nodes[0], do[:script.MaxSteps]...)
		if n := calls(t, server, "evalsha"); n != "1" {
			t.Errorf("%s calls of scripts, want one, as the server has the script", n)
		}
	}
}

// A server that forgets its scripts again and again fails no call.
func TestScriptsAreForgottenAllTheTime(t *testing.T) {
	server := redistest.Start(t)
	s := stepsStore(t, "redis://"+server.Addr())
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			server.Text(t, "SCRIPT", "FLUSH")
		}
	})
	var locks sync.WaitGroup
	for range 8 {
		locks.Go(func() {
			for range 50 {
				l := stepsLease(store.NewOwner())
				if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
					t.Error(err)
				}
				if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	locks.Wait()
	stop()
	all.Wait()
}

// No step of a list was done if the server has become a replica: all calls count as not sent.
func TestListForAMasterThatWasDemoted(t *testing.T) {
	t.Parallel() // it mostly waits
	w := redistest.StartWatched(t, 1)
	s := stepsStore(t, w.URL())
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: stepsLease("first")}); err != nil {
		t.Fatal(err)
	}
	got := make(kinds, 4)
	var do []func()
	for range cap(got) {
		c := s.Encode(driver.Question{Op: quorum.Acquire, Lease: stepsLease(store.NewOwner())}, nil)
		do = append(do, func() {
			if err := s.Nodes[0].Enqueue(node.Call{Command: c, Timeout: 20 * time.Second, To: got}, false); err != nil {
				t.Error(err)
			}
		})
	}
	w.Master.Text(t, "REPLICAOF", "127.0.0.1", "1")
	together(t, s.Nodes[0], do...)
	for range cap(got) {
		select {
		case kind := <-got:
			if kind != quorum.Unsent {
				t.Errorf("a call of the list counts as %v, want %v", kind, quorum.Unsent)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("a call of the list was not answered within 20s")
		}
	}
}

// kinds receives the kinds of replies.
type kinds chan quorum.Kind

func (k kinds) Receive(_, _ int, a driver.Reply) { k <- a.Kind }

// A user that lacks the permission for one lock of a list gets all others.
func TestListWithALockThatIsNotPermitted(t *testing.T) {
	server := redistest.Start(t)
	server.Text(t, "ACL", "SETUSER", "some", "on", ">secret", "+@all", "&*", "~ok*", "~{ok*", "~leasehold:*")
	s := stepsStore(t, "redis://some:secret@"+server.Addr())
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: stepsLease("ok")}); err != nil {
		t.Fatal(err)
	}
	var errs [5]error
	var do []func()
	for i, name := range []string{"ok1", "forbidden", "ok2", "ok3", "ok4"} {
		l := stepsLease(name)
		do = append(do, func() { _, errs[i] = s.Acquire(t.Context(), store.AcquireRequest{Lease: l}) })
	}
	server.Text(t, "CONFIG", "RESETSTAT")
	together(t, s.Nodes[0], do...)
	if texts := calls(t, server, "eval"); texts != "" {
		t.Errorf("%s texts of scripts were sent, want none: the server knows them", texts)
	}
	if errs[0] != nil || errs[2] != nil || errs[3] != nil || errs[4] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), "NOPERM") {
		t.Errorf("%q, want only the second one to lack a permission", errs)
	}
}

// In a cluster only calls for one slot are sent together. If the slot has moved, all of them are
// sent to its new member.
func TestListsInACluster(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	s, err := openClusterEngine(t.Context(), "redis-cluster://"+c.Masters[0].Addr(), &Options{NodeTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	first := stepsLease("a")
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: first}); err != nil {
		t.Fatal(err)
	}
	has := c.Has(t, "a")
	_, slot := cluster.Place("a")
	other := ""
	for i := 0; other == ""; i++ { // another slot of the same member
		name := fmt.Sprint("b", i)
		if _, at := cluster.Place(name); at != slot && s.r.MemberFor(at) == s.r.MemberFor(slot) {
			other = name
		}
	}
	for round, want := range []string{"2", "0"} { // in the second round it only redirects
		n := s.r.MemberFor(slot)
		has.Text(t, "CONFIG", "RESETSTAT")
		var do []func()
		var errs [8]error
		for i, name := range []string{"a", "a", "a", "a", other, other, other, other} {
			l := stepsLease(name)
			if round == 1 {
				l.Name = "a"
			}
			do = append(do, func() { _, errs[i] = s.Acquire(t.Context(), store.AcquireRequest{Lease: l}) })
		}
		if round == 1 {
			to := c.Masters[0]
			if to == has {
				to = c.Masters[1]
			}
			c.Move(t, "a", to)
		}
		together(t, n, do...)
		granted := 0
		var busy *store.BusyError
		for _, err := range errs {
			if err == nil {
				granted++
			} else if !errors.As(err, &busy) {
				t.Errorf("round %d: %v, want a grant or a *BusyError", round, err)
			}
		}
		if granted != 1-round {
			t.Errorf("round %d: %d acquires were granted, want %d", round, granted, 1-round)
		}
		if n := calls(t, has, "evalsha"); n != want {
			t.Errorf("round %d: %s calls of scripts, want %s", round, n, want)
		}
	}
}

// A server that does not know KEEPTTL (before Redis 6) grants locks, and keeps counters.
func TestServerThatKeepsNoTTL(t *testing.T) {
	n := onSimulated(t)
	begin := clock.Instant(1_790_000_000_123_456_000)
	if err := n.Begin(begin); err != nil {
		t.Fatal(err)
	}
	n.change = func(text string) string { return strings.ReplaceAll(text, "'KEEPTTL'", "'NO SUCH WORD'") }
	for i := range 2 {
		n.s.Wall = func() time.Time { return time.Unix(0, int64(begin)).Add(time.Duration(i) * time.Millisecond) }
		l := stepsLease("a")
		said, err := n.one([]*script.Command{
			n.s.Encode(driver.Question{Op: quorum.Acquire, Lease: l}, nil),
			n.s.Encode(driver.Question{Op: quorum.Release, Lease: l}, nil),
		})
		if err != nil {
			t.Fatal(err)
		}
		want := uint64(n.s.Wall().Add(script.ProposalLead).UnixMicro())
		if a := said[0].Answer(script.Acquire); a.Kind != quorum.Yes || a.Token != want {
			t.Errorf("grant %d: %v with token %d, want %d", i+1, a.Kind, a.Token, want)
		}
		if counter := n.text(t, "GET", "{a}:token"); counter != fmt.Sprint(want) {
			t.Errorf("grant %d: the counter is %s, want %d", i+1, counter, want)
		}
	}
	if left := n.text(t, "PTTL", "{a}:token"); left != "86400000" {
		t.Errorf("the counter lasts for %s ms, want a day", left)
	}
}

// A reply that does not fit the list answers none of its steps, and an error answers all.
func TestReplyToAStep(t *testing.T) {
	one := resp.Value{Kind: '*', List: []resp.Value{{Kind: ':', Num: 1}}}
	clock := resp.Value{Kind: '$', Text: []byte("1790000000 7")}
	command := new(script.Command)
	for name, c := range map[string]struct {
		reply resp.Value
		want  quorum.Kind
	}{
		"as many":  {resp.Value{Kind: '*', List: []resp.Value{clock, one, one}}, quorum.Yes},
		"a clock":  {clock, quorum.Yes},
		"null":     {resp.Value{Kind: '$', Null: true}, quorum.Unknown},
		"a text":   {resp.Value{Kind: '$', Text: []byte("OK")}, quorum.Unknown},
		"no head":  {resp.Value{Kind: '*', List: []resp.Value{one, one, one}}, quorum.Unknown},
		"no clock": {resp.Value{Kind: '*', List: []resp.Value{{Kind: '$', Null: true}, one, one}}, quorum.Yes},
		"too few":  {resp.Value{Kind: '*', List: []resp.Value{clock, one}}, quorum.Unknown},
		"too many": {resp.Value{Kind: '*', List: []resp.Value{clock, one, one, one}}, quorum.Unknown},
		"a number": {resp.Value{Kind: ':', Num: 1}, quorum.Unknown},
		"an error": {resp.Value{Kind: '-', Text: []byte("OOM no memory")}, quorum.Unsent},
	} {
		list := script.ReplyToList(c.reply, 2)
		for i := range 2 {
			if a := list.Step(i, command).Answer(script.Release); a.Kind != c.want {
				t.Errorf("%s: the answer to step %d is %v, want %v", name, i+1, a.Kind, c.want)
			}
		}
	}
}
