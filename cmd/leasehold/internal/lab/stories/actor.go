package stories

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
	"github.com/leasehold-dev/leasehold/store"
)

// actor is a client: a process of its own, which does as the play says.
type actor struct {
	s       *stage
	name    string
	process *child.Process
	in      io.Closer
	orders  *json.Encoder
	reports *json.Decoder
}

// enter starts a client.
func (s *stage) enter(name string) *actor {
	cmd := s.config.Command()
	in, err := cmd.StdinPipe()
	s.check(err)
	out, err := cmd.StdoutPipe()
	s.check(err)
	a := &actor{s: s, name: name, in: in, orders: json.NewEncoder(in), reports: json.NewDecoder(out)}
	a.process, err = child.Start(cmd)
	s.check(err)
	s.atEnd(a.process.Kill)
	return a
}

// begin sends the client an order. Method report waits for the result.
func (a *actor) begin(o order) {
	if err := a.orders.Encode(o); err != nil {
		a.s.fail("client %s cannot be told what to do: %w", a.name, err)
	}
}

func (a *actor) report() report {
	type result struct {
		r   report
		err error
	}
	done := make(chan result, 1)
	go func() {
		var res result
		res.err = a.reports.Decode(&res.r)
		done <- res
	}()
	var res result
	select {
	case res = <-done:
	case <-a.s.ctx.Done():
		a.process.Kill() // which ends the reading
		res = <-done
		a.s.check(a.s.ctx.Err())
	}
	if res.err != nil {
		a.s.fail("client %s does not answer: %w", a.name, res.err)
	}
	return res.r
}

func (a *actor) do(o order) report {
	a.begin(o)
	return a.report()
}

// says is a line of the actor's.
func (a *actor) says(format string, args ...any) { a.s.does(a.name, format, args...) }

// redis sends a plain command to the server at addr and returns the answer, or
// "" if there was none.
func (a *actor) redis(addr string, args ...string) string {
	return a.answered(args, a.do(order{Do: plain, Addr: addr, Args: args}))
}

// answered tells how a plain command was answered.
func (a *actor) answered(args []string, r report) string {
	line := strings.Join(args, " ")
	if r.Err != "" {
		a.says("%s -> no answer", line)
		return ""
	}
	a.says("%s -> %s", line, r.Reply)
	return r.Reply
}

// open has the client use Leasehold over this store.
func (a *actor) open(url string) *actor {
	a.must(a.do(order{Do: open, Store: url}))
	return a
}

// must ends the play if an order failed that cannot fail.
func (a *actor) must(r report) report {
	if r.Err != "" {
		a.s.fail("client %s: %s", a.name, r.Err)
	}
	return r
}

// terms are how a lock is asked for.
type terms struct {
	ttl     time.Duration // zero: the play's
	noRenew bool
	wait    time.Duration // zero: one attempt
	require store.Class
}

func (a *actor) asking(t terms) order {
	if t.ttl == 0 {
		t.ttl = a.s.ttl
	}
	return order{Do: acquire, Lock: lock, TTL: t.ttl, Wait: t.wait, NoRenew: t.noRenew, Require: t.require}
}

// tries asks for the lock and tells how it went.
func (a *actor) tries(t terms) (fence.Token, bool) { return a.asked(a.do(a.asking(t))) }

// asked tells what became of a request for the lock.
func (a *actor) asked(r report) (fence.Token, bool) {
	switch {
	case r.Err == "":
		a.says("gets the lock, token %v", r.Token)
	case r.Busy:
		a.says("asks for the lock: it is taken")
	default:
		a.says("asks for the lock: no (%s)", r.Err)
	}
	return r.Token, r.Err == ""
}

// gets is tries for a request that is to succeed, as in a store that has just
// been started: it waits for that.
func (a *actor) gets(t terms) fence.Token {
	if t.wait == 0 {
		t.wait = long
	}
	r := a.must(a.do(a.asking(t)))
	a.asked(r)
	return r.Token
}

// getsOnAll is gets for a lock that all these nodes are to have. A majority may
// grant it while another, just started, does not yet.
func (a *actor) getsOnAll(nodes []*localredis.Server, t terms) fence.Token {
	t.wait = long
	for {
		r := a.must(a.do(a.asking(t)))
		missing := func(n *localredis.Server) bool { return a.s.asks(n, "EXISTS", lock) != "1" }
		for end := time.Now().Add(a.s.ttl / 4); time.Now().Before(end); a.s.pause(5*time.Millisecond, "the lock on all nodes") {
			if !slices.ContainsFunc(nodes, missing) {
				a.asked(r)
				return r.Token
			}
		}
		a.releases()
	}
}

// locks waits for the lock with the engine's own client, whose session lasts for ttl.
func (a *actor) locks(url, client string, ttl time.Duration) {
	a.must(a.do(order{Do: native, Store: url, Lock: lock, TTL: ttl}))
	a.says("locks with %s", client)
}

// holds reports whether the client may trust its lease, and why not.
func (a *actor) holds() (bool, string) {
	r := a.do(order{Do: holds})
	return r.Err == "", r.Err
}

// releases releases the lock and returns the error.
func (a *actor) releases() string { return a.do(order{Do: release}).Err }

// writes writes to the resource, and says whether that was accepted.
func (a *actor) writes(r *resource, token fence.Token) bool {
	return a.must(a.do(a.writing(r.url, token))).Accepted
}

func (a *actor) writing(url string, token fence.Token) order {
	return order{Do: write, Addr: url, Value: "written by " + a.name, Token: token}
}

// dies is kill -9.
func (a *actor) dies(when string) {
	a.process.Kill()
	a.s.happens(a.name, "is killed (SIGKILL)%s", when)
}

// stands still until goesOn.
func (a *actor) stands(when string) {
	a.s.check(a.process.Freeze())
	a.s.happens(a.name, "is stopped (SIGSTOP)%s", when)
}

func (a *actor) goesOn() {
	a.s.check(a.process.Thaw())
	a.s.happens(a.name, "goes on (SIGCONT), and does not know that time has passed")
}
