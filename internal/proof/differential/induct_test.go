package differential_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/induct"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// The explorer and the other tests here use modelnode as a node, and the proof has steps
// of a node. So every step of a model node must be one of the proof's, in the worst of
// networks, and what it refuses because of its holder or its quarantine, the proof refuses.
func TestModelNodeTakesProvedSteps(t *testing.T) {
	for name, kind := range map[string]kind{
		"mutex":      newMutex(modelnode.Rules{NoClock: true}),
		"read-write": newReadWrite(modelnode.KindRules{}),
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(60) {
				if err := runNodes(seed, kind, 400); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
}

// A model node with a mechanism less takes a step that the proof has not.
func TestModelNodeMutantsAreRefused(t *testing.T) {
	for _, m := range []struct {
		name  string
		kind  kind
		needs string
	}{
		{"ConfirmAnywhere", newMutex(modelnode.Rules{NoClock: true, ConfirmAnywhere: true}), "the attempt has the lock there"},
		{"ExtendCreates", newMutex(modelnode.Rules{NoClock: true, ExtendCreates: true}), "the attempt has the lock there"},
		{"HealsQuarantined", newMutex(modelnode.Rules{NoClock: true, HealsQuarantined: true}), "the node's quarantine is over"},
		{"HandsQuarantined", newMutex(modelnode.Rules{NoClock: true, HandsQuarantined: true}), "the node's quarantine is over"},
		{"HandsSame", newMutex(modelnode.Rules{NoClock: true, HandsSame: true}), "the token is larger"},
		{"HealsUndrawn", newReadWrite(modelnode.KindRules{HealsUndrawn: true}), "the token is larger"},
		{"NeverDraws", newReadWrite(modelnode.KindRules{NeverDraws: true}), "the token is larger"},
	} {
		found := error(nil)
		for seed := uint64(0); seed < 200 && found == nil; seed++ {
			found = runNodes(seed, m.kind, 400)
		}
		if r := (*induct.Refusal)(nil); !errors.As(found, &r) || !strings.Contains(r.Needs, m.needs) {
			t.Errorf("%s: %v, want a refusal that says %q", m.name, found, m.needs)
		}
	}
}

const (
	testNodes = 3
	testTTL   = 10 * time.Nanosecond
)

// request is a message on its way to a node.
type request struct {
	op      string
	node    int
	attempt int
	sent    int64
	token   uint64
	from    int64 // of a confirmation: departure of the request that was granted
	wait    bool
	stand   bool // it only wants a place
}

// grantSeen is what a client knows of a node's grant.
type grantSeen struct {
	token uint64
	from  int64
}

// tester is a client of one attempt.
type tester struct {
	grants       map[int]grantSeen
	extended     map[int64]int // departure: the nodes that extended
	leased, over bool
	until        int64
}

// nodeRun is a run of model nodes beside the proof.
type nodeRun struct {
	*rand.Rand
	kind     kind
	st       *induct.State
	now      int64
	nodes    [testNodes]node
	owners   [testNodes]map[int]bool // by the proof
	attempts []*tester               // owner values are numbers in here, from 1
	pending  []request
}

func runNodes(seed uint64, k kind, events int) error {
	r := &nodeRun{Rand: rand.New(rand.NewPCG(seed, 1)), kind: k, attempts: []*tester{nil}}
	for i := range r.nodes {
		r.nodes[i], r.owners[i] = k.node(), map[int]bool{}
	}
	r.st = induct.Redlock().Start(induct.World{Nodes: testNodes, TTL: func(int) time.Duration { return testTTL }, Longest: testTTL, Reads: k.reads})
	for i := range events {
		if err := r.act(); err != nil {
			return err
		}
		if i%40 == 0 {
			if err := r.st.Check(); err != nil {
				return fmt.Errorf("after %d events: %w", i, err)
			}
		}
	}
	return nil
}

func (r *nodeRun) apply(step string, args ...int64) error {
	return r.st.Apply(induct.Event{At: r.now, Step: step, Args: induct.Args(args...)})
}

// act does something at random.
func (r *nodeRun) act() error {
	switch k := r.IntN(100); {
	case k < 15:
		r.now += r.Int64N(4)
	case k < 20:
		r.attempts = append(r.attempts, &tester{grants: map[int]grantSeen{}, extended: map[int64]int{}})
		a := len(r.attempts) - 1
		r.toAll(request{op: "acquire", attempt: a, wait: r.IntN(2) == 0, stand: r.IntN(4) == 0})
		return r.apply("begin", int64(a))
	case k < 22:
		n := r.IntN(testNodes)
		r.nodes[n].crash(clock.Instant(r.now))
		clear(r.owners[n])
		return r.apply("crash", int64(n), r.now+int64(testTTL), 0)
	case k < 70 && len(r.pending) > 0:
		i := r.IntN(len(r.pending))
		m := r.pending[i]
		if r.IntN(5) > 0 { // otherwise it is delivered again
			r.pending = append(r.pending[:i], r.pending[i+1:]...)
		}
		return r.deliver(m)
	case len(r.attempts) > 1:
		back := min(len(r.attempts)-1, 4)
		return r.client(len(r.attempts) - 1 - r.IntN(back))
	}
	return nil
}

func (r *nodeRun) toAll(m request) {
	m.sent = r.now
	for m.node = range testNodes {
		r.pending = append(r.pending, m)
	}
}

// client lets a client do what it may.
func (r *nodeRun) client(a int) error {
	c := r.attempts[a]
	switch {
	case c.over:
		return nil
	case r.IntN(12) == 0:
		c.over = true
		r.toAll(request{op: "release", attempt: a})
		return r.apply("giveUp", int64(a))
	case !c.leased:
		return r.win(a, c)
	}
	for e, nodes := range c.extended {
		if u := e + int64(testTTL); majority(nodes) && r.now < c.until && u > c.until {
			c.until = u
			r.toAll(request{op: "heal", attempt: a})
			return r.apply("renew", int64(a), int64(nodes), u)
		}
	}
	if r.now < c.until {
		r.toAll(request{op: "extend", attempt: a})
	}
	return nil
}

func majority(nodes int) bool {
	n := 0
	for ; nodes != 0; nodes &= nodes - 1 {
		n++
	}
	return 2*n > testNodes
}

// win takes the lease, or asks for confirmations of a token.
func (r *nodeRun) win(a int, c *tester) error {
	token := uint64(0)
	for _, g := range c.grants {
		token = max(token, g.token)
	}
	nodes, until := 0, int64(1)<<60
	for n, g := range c.grants {
		if end := g.from + int64(testTTL); g.token == token && r.now < end {
			nodes |= 1 << n
			until = min(until, end)
		} else if g.token < token {
			r.pending = append(r.pending, request{op: "confirm", node: n, attempt: a, sent: r.now, token: token, from: g.from})
		}
	}
	if !majority(nodes) {
		return nil
	}
	c.leased, c.until = true, until
	return r.apply("win", int64(a), int64(nodes), int64(token), until)
}

// deliver lets a node execute a request.
func (r *nodeRun) deliver(m request) error {
	nd, now := r.nodes[m.node], clock.Instant(r.now)
	owners := r.owners[m.node]
	for _, o := range slices.Sorted(maps.Keys(owners)) {
		if !nd.holds(o, now) {
			delete(owners, o)
			if err := r.apply("forget", int64(m.node), int64(o)); err != nil {
				return err
			}
		}
	}
	n, a, e := int64(m.node), int64(m.attempt), m.sent
	ans := nd.do(m, now)
	done := ans.Verdict == modelnode.Done
	switch {
	case m.op == "release":
		delete(owners, m.attempt)
		if err := r.apply("release", n, a); err != nil {
			return err
		}
		for _, p := range ans.Pushes {
			if err := r.granted(m.node, p.Owner, p.Token, int64(p.Stamp)); err != nil {
				return err
			}
		}
	case m.op == "acquire" && (ans.Verdict == modelnode.Quarantined || ans.Verdict == modelnode.Taken && ans.Holder != 0):
		if err := r.apply("grant", n, a, 1<<40, e); err == nil {
			return fmt.Errorf("the proof grants what the node refuses: node %d, attempt %d", m.node, m.attempt)
		}
	case !done:
	case m.op == "acquire":
		return r.granted(m.node, m.attempt, ans.Token, e)
	case m.op == "confirm":
		c := r.attempts[m.attempt]
		if g := c.grants[m.node]; ans.Token > g.token {
			c.grants[m.node] = grantSeen{ans.Token, g.from}
		}
		return r.apply("confirm", n, a, int64(m.token), m.from)
	case m.op == "extend":
		r.attempts[m.attempt].extended[e] |= 1 << m.node
		return r.apply("extend", n, a, e)
	case m.op == "heal" && ans.Token != 0 && !owners[m.attempt]: // of a kind that draws a token then
		owners[m.attempt] = true
		return r.apply("grant", n, a, int64(ans.Token), e)
	case m.op == "heal" && ans.Token != 0:
		return r.apply("extend", n, a, e)
	case m.op == "heal":
		owners[m.attempt] = true
		return r.apply("heal", n, a, e)
	}
	return nil
}

// granted is a grant, whose answer the client reads.
func (r *nodeRun) granted(node, attempt int, token uint64, sent int64) error {
	r.owners[node][attempt] = true
	g := r.attempts[attempt].grants[node]
	if token >= g.token {
		r.attempts[attempt].grants[node] = grantSeen{token, max(sent, g.from)}
	}
	return r.apply("grant", int64(node), int64(attempt), int64(token), sent)
}

// kind is a kind of lock.
type kind struct {
	node  func() node
	reads func(attempt int) bool
}

// node is a model node.
type node interface {
	holds(attempt int, now clock.Instant) bool
	do(m request, now clock.Instant) modelnode.Answer[int]
	crash(now clock.Instant)
}

func newMutex(rules modelnode.Rules) kind {
	return kind{node: func() node { return &mutexNode{rules: rules} }}
}

type mutexNode struct {
	modelnode.Lock[int]
	rules modelnode.Rules
}

func (l *mutexNode) holds(attempt int, now clock.Instant) bool {
	held, _, ok := l.Holder(now)
	return ok && held == attempt
}

func (l *mutexNode) crash(now clock.Instant) { l.Lock = l.Crash(true, testTTL, now) }

func (l *mutexNode) do(m request, now clock.Instant) (ans modelnode.Answer[int]) {
	switch m.op {
	case "acquire":
		l.Lock, ans = l.Acquire(l.rules, modelnode.Ask[int]{Owner: m.attempt, TTL: testTTL, Wait: m.wait, Stand: m.stand, Stamp: uint64(m.sent)}, now)
	case "confirm":
		l.Lock, ans = l.Confirm(l.rules, m.attempt, m.token, now)
	case "extend":
		l.Lock, ans = l.Extend(l.rules, m.attempt, testTTL, now)
	case "heal":
		l.Lock, ans = l.Heal(l.rules, m.attempt, testTTL, now)
		ans.Token = 0 // it draws none
	case "release":
		l.Lock, ans = l.Release(l.rules, modelnode.Ending[int]{Owner: m.attempt, Tombstone: testTTL}, now)
	}
	return ans
}

// newReadWrite is a lock whose every third attempt is a writer's. Nobody waits at its nodes.
func newReadWrite(rules modelnode.KindRules) kind {
	return kind{
		node:  func() node { return &readWriteNode{rules: rules} },
		reads: func(attempt int) bool { return attempt%3 != 0 },
	}
}

type readWriteNode struct {
	modelnode.Shared
	rules modelnode.KindRules
}

func (l *readWriteNode) holds(attempt int, now clock.Instant) bool {
	return slices.ContainsFunc(l.Holds, func(h rule.Hold) bool { return h.Owner == strconv.Itoa(attempt) && now < h.Expiry })
}

func (l *readWriteNode) crash(now clock.Instant) { l.Shared = l.Crash(true, testTTL, now) }

func (l *readWriteNode) do(m request, now clock.Instant) modelnode.Answer[int] {
	owner := strconv.Itoa(m.attempt)
	ask := rule.Ask{Spec: rule.ReadWrite, Owner: owner, Weight: 1, TTL: testTTL}
	if m.attempt%3 == 0 {
		ask.Weight = rule.ReadWriteLimit
	}
	var ans modelnode.Answer[string]
	switch m.op {
	case "acquire":
		l.Shared, ans, _ = l.Acquire(l.rules, ask, now)
	case "confirm":
		l.Shared, ans = l.Confirm(owner, "", m.token, now)
	case "extend":
		l.Shared, ans = l.Extend(l.rules, ask, now)
	case "heal":
		l.Shared, ans = l.Heal(l.rules, ask, now)
	case "release":
		l.Shared, ans = l.Release(rule.End{Owner: owner, Tombstone: testTTL}, false, now)
	}
	holder, _ := strconv.Atoi(ans.Holder)
	return modelnode.Answer[int]{Verdict: ans.Verdict, Token: ans.Token, Holder: holder}
}
