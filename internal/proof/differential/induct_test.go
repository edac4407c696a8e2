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
		"semaphore":  newSemaphore(modelnode.KindRules{}),
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
		{"RenewsOthers", newSemaphore(modelnode.KindRules{RenewsOthers: true}), "the attempt has the lock there"},
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
	slot    int  // it must have; -1: any
}

// grantSeen is what a client knows of a node's grant.
type grantSeen struct {
	token uint64
	from  int64
	slot  int
}

// tester is a client of one attempt.
type tester struct {
	grants       map[int]grantSeen
	extended     map[int64]int // departure: the nodes that extended
	leased, over bool
	until        int64
	slot         int // of the lease, or that it has settled on; -1: none yet
}

// nodeRun is a run of model nodes beside the proof.
type nodeRun struct {
	*rand.Rand
	kind     kind
	st       []*induct.State // of each slot, which is a lock of its own
	now      int64
	nodes    [testNodes]node
	owners   [testNodes][]map[int]bool // by the proof, of each slot
	attempts []*tester                 // owner values are numbers in here, from 1
	pending  []request
}

func runNodes(seed uint64, k kind, events int) error {
	r := &nodeRun{Rand: rand.New(rand.NewPCG(seed, 1)), kind: k, attempts: []*tester{nil}}
	for i := range r.nodes {
		r.nodes[i] = k.node()
		for range k.slots {
			r.owners[i] = append(r.owners[i], map[int]bool{})
		}
	}
	for range k.slots {
		r.st = append(r.st, induct.Redlock().Start(induct.World{Nodes: testNodes, TTL: func(int) time.Duration { return testTTL }, Longest: testTTL, Reads: k.reads}))
	}
	for i := range events {
		if err := r.act(); err != nil {
			return err
		}
		if i%40 == 0 {
			for _, st := range r.st {
				if err := st.Check(); err != nil {
					return fmt.Errorf("after %d events: %w", i, err)
				}
			}
		}
	}
	return nil
}

func (r *nodeRun) apply(slot int, step string, args ...int64) error {
	return r.st[slot].Apply(induct.Event{At: r.now, Step: step, Args: induct.Args(args...)})
}

// applyAll takes a step in all slots, except in one.
func (r *nodeRun) applyAll(except int, step string, args ...int64) error {
	for slot := range r.st {
		if slot == except {
			continue
		}
		if err := r.apply(slot, step, args...); err != nil {
			return err
		}
	}
	return nil
}

// act does something at random.
func (r *nodeRun) act() error {
	switch k := r.IntN(100); {
	case k < 15:
		r.now += r.Int64N(4)
	case k < 20:
		r.attempts = append(r.attempts, &tester{grants: map[int]grantSeen{}, extended: map[int64]int{}, slot: -1})
		a := len(r.attempts) - 1
		r.toAll(request{op: "acquire", attempt: a, slot: -1, wait: r.IntN(2) == 0, stand: r.IntN(4) == 0})
		return r.applyAll(-1, "begin", int64(a))
	case k < 22:
		n := r.IntN(testNodes)
		r.nodes[n].crash(clock.Instant(r.now))
		for _, owners := range r.owners[n] {
			clear(owners)
		}
		return r.applyAll(-1, "crash", int64(n), r.now+int64(testTTL), 0)
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
		return r.applyAll(-1, "giveUp", int64(a))
	case !c.leased && c.slot < 0 && len(r.st) > 1 && r.IntN(6) == 0: // it wants a slot on all nodes
		c.slot = r.IntN(len(r.st))
		r.toAll(request{op: "acquire", attempt: a, slot: c.slot})
		return r.applyAll(c.slot, "giveUp", int64(a))
	case !c.leased:
		return r.win(a, c)
	}
	for e, nodes := range c.extended {
		if u := e + int64(testTTL); majority(nodes) && r.now < c.until && u > c.until {
			c.until = u
			r.toAll(request{op: "heal", attempt: a, slot: c.slot})
			return r.apply(c.slot, "renew", int64(a), int64(nodes), u)
		}
	}
	if r.now < c.until {
		r.toAll(request{op: "extend", attempt: a, slot: c.slot})
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
	for slot := range r.st {
		if c.slot < 0 || c.slot == slot {
			if won, err := r.winSlot(a, c, slot); won || err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *nodeRun) winSlot(a int, c *tester, slot int) (bool, error) {
	token := uint64(0)
	for _, g := range c.grants {
		if g.slot == slot {
			token = max(token, g.token)
		}
	}
	nodes, until := 0, int64(1)<<60
	for n, g := range c.grants {
		if g.slot != slot {
			continue
		}
		if end := g.from + int64(testTTL); g.token == token && r.now < end {
			nodes |= 1 << n
			until = min(until, end)
		} else if g.token < token {
			r.pending = append(r.pending, request{op: "confirm", node: n, attempt: a, slot: slot, sent: r.now, token: token, from: g.from})
		}
	}
	if !majority(nodes) {
		return false, nil
	}
	if c.slot < 0 {
		if err := r.applyAll(slot, "giveUp", int64(a)); err != nil {
			return true, err
		}
	}
	c.leased, c.until, c.slot = true, until, slot
	return true, r.apply(slot, "win", int64(a), int64(nodes), int64(token), until)
}

// deliver lets a node execute a request.
func (r *nodeRun) deliver(m request) error {
	nd, now := r.nodes[m.node], clock.Instant(r.now)
	n, a, e := int64(m.node), int64(m.attempt), m.sent
	if err := r.ended(m.node, "forget", now, 0); err != nil {
		return err
	}
	ans, slot := nd.do(m, now)
	done := ans.Verdict == modelnode.Done
	if m.op != "release" { // the owner wants another slot than it had there
		if err := r.ended(m.node, "release", now, m.attempt); err != nil {
			return err
		}
	}
	had := r.owners[m.node][slot][m.attempt]
	switch {
	case m.op == "release":
		for _, owners := range r.owners[m.node] {
			delete(owners, m.attempt)
		}
		if err := r.applyAll(-1, "release", n, a); err != nil {
			return err
		}
		for _, p := range ans.Pushes {
			if err := r.granted(m.node, p.Owner, slot, p.Token, int64(p.Stamp)); err != nil {
				return err
			}
		}
	case m.op == "acquire" && (ans.Verdict == modelnode.Quarantined || ans.Verdict == modelnode.Taken && ans.Holder != 0):
		for slot := range r.st {
			if m.slot >= 0 && m.slot != slot {
				continue
			}
			if err := r.apply(slot, "grant", n, a, 1<<40, e); err == nil {
				return fmt.Errorf("the proof grants what the node refuses: node %d, attempt %d", m.node, m.attempt)
			}
		}
	case !done:
	case m.op == "acquire":
		return r.granted(m.node, m.attempt, slot, ans.Token, e)
	case m.op == "confirm":
		c := r.attempts[m.attempt]
		if g := c.grants[m.node]; g.slot == slot && ans.Token > g.token {
			c.grants[m.node] = grantSeen{ans.Token, g.from, slot}
		}
		return r.apply(slot, "confirm", n, a, int64(ans.Token), m.from)
	case m.op == "extend":
		r.attempts[m.attempt].extended[e] |= 1 << m.node
		return r.apply(slot, "extend", n, a, e)
	case m.op == "heal" && ans.Token != 0 && !had: // of a kind that draws a token then
		r.owners[m.node][slot][m.attempt] = true
		return r.apply(slot, "grant", n, a, int64(ans.Token), e)
	case m.op == "heal" && ans.Token != 0:
		return r.apply(slot, "extend", n, a, e)
	case m.op == "heal":
		r.owners[m.node][slot][m.attempt] = true
		return r.apply(slot, "heal", n, a, e)
	}
	return nil
}

// ended takes the step by which a node has lost the leases of the attempt with the number only, or of
// all attempts if only is 0.
func (r *nodeRun) ended(node int, step string, now clock.Instant, only int) error {
	for slot, owners := range r.owners[node] {
		for _, o := range slices.Sorted(maps.Keys(owners)) {
			if only != 0 && o != only || r.nodes[node].holds(o, slot, now) {
				continue
			}
			delete(owners, o)
			if err := r.apply(slot, step, int64(node), int64(o)); err != nil {
				return err
			}
		}
	}
	return nil
}

// granted is a grant, whose answer the client reads.
func (r *nodeRun) granted(node, attempt, slot int, token uint64, sent int64) error {
	r.owners[node][slot][attempt] = true
	c := r.attempts[attempt]
	if g := c.grants[node]; (c.slot < 0 || c.slot == slot) && (token >= g.token || slot != g.slot) {
		from := sent
		if slot == g.slot {
			from = max(sent, g.from)
		}
		c.grants[node] = grantSeen{token, from, slot}
	}
	return r.apply(slot, "grant", int64(node), int64(attempt), int64(token), sent)
}

// kind is a kind of lock.
type kind struct {
	node  func() node
	reads func(attempt int) bool
	slots int
}

// node is a model node. It does a request, and answers with the slot that it is about.
type node interface {
	holds(attempt, slot int, now clock.Instant) bool
	do(m request, now clock.Instant) (ans modelnode.Answer[int], slot int)
	crash(now clock.Instant)
}

func newMutex(rules modelnode.Rules) kind {
	return kind{node: func() node { return &mutexNode{rules: rules} }, slots: 1}
}

type mutexNode struct {
	modelnode.Lock[int]
	rules modelnode.Rules
}

func (l *mutexNode) holds(attempt, _ int, now clock.Instant) bool {
	held, _, ok := l.Holder(now)
	return ok && held == attempt
}

func (l *mutexNode) crash(now clock.Instant) { l.Lock = l.Crash(true, testTTL, now) }

func (l *mutexNode) do(m request, now clock.Instant) (ans modelnode.Answer[int], slot int) {
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
	return ans, 0
}

// newReadWrite is a lock whose every third attempt is a writer's. Nobody waits at its nodes.
func newReadWrite(rules modelnode.KindRules) kind {
	writes := func(attempt int) bool { return attempt%3 == 0 }
	return kind{
		node: func() node {
			return &sharedNode{rules: rules, ask: func(m request) rule.Ask {
				ask := rule.Ask{Spec: rule.ReadWrite, Weight: 1}
				if writes(m.attempt) {
					ask.Weight = rule.ReadWriteLimit
				}
				return ask
			}}
		},
		reads: func(attempt int) bool { return !writes(attempt) },
		slots: 1,
	}
}

// newSemaphore is a semaphore with two permits. Nobody waits at its nodes.
func newSemaphore(rules modelnode.KindRules) kind {
	return kind{
		node: func() node {
			return &sharedNode{rules: rules, ask: func(m request) rule.Ask {
				ask := rule.Ask{Spec: rule.Semaphore(2), Weight: 1, Numbered: true}
				if m.slot >= 0 {
					ask.Slots, ask.Exact = rule.Slots(strconv.Itoa(m.slot)), true
				}
				return ask
			}}
		},
		slots: 2,
	}
}

type sharedNode struct {
	modelnode.Shared
	rules modelnode.KindRules
	ask   func(m request) rule.Ask
}

func (l *sharedNode) holds(attempt, slot int, now clock.Instant) bool {
	return slices.ContainsFunc(l.Holds, func(h rule.Hold) bool {
		return h.Owner == strconv.Itoa(attempt) && now < h.Expiry && (h.Slots == "" || h.Slots == rule.Slots(strconv.Itoa(slot)))
	})
}

func (l *sharedNode) crash(now clock.Instant) { l.Shared = l.Crash(true, testTTL, now) }

func (l *sharedNode) do(m request, now clock.Instant) (modelnode.Answer[int], int) {
	ask := l.ask(m)
	ask.Owner, ask.TTL = strconv.Itoa(m.attempt), testTTL
	given := ask.Slots
	var ans modelnode.Answer[string]
	switch m.op {
	case "acquire":
		l.Shared, ans, given = l.Acquire(l.rules, ask, now)
	case "confirm":
		l.Shared, ans = l.Confirm(ask.Owner, ask.Slots, m.token, now)
	case "extend":
		l.Shared, ans = l.Extend(l.rules, ask, now)
	case "heal":
		l.Shared, ans = l.Heal(l.rules, ask, now)
	case "release":
		l.Shared, ans = l.Release(rule.End{Owner: ask.Owner, Tombstone: testTTL}, false, now)
	}
	holder, _ := strconv.Atoi(ans.Holder)
	slot, _ := strconv.Atoi(string(given)) // 0 if there is none
	return modelnode.Answer[int]{Verdict: ans.Verdict, Token: ans.Token, Holder: holder}, slot
}
