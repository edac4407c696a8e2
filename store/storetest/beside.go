package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// checkBeside: of two calls of an owner that are under way at once, each does what it would do if
// the other one had come before it, or would come after it. What that is, the store shows itself.
// An engine that reads, and writes later, can take back what came in between.
func checkBeside(t *trial) {
	if t.several() {
		return // each of the nodes may have its own order
	}
	rounds, end := 1<<20, t.now().Add(besideTime)
	if t.options.Virtual {
		rounds = 60
	}
	seen := make(map[string][]string)
	for i := range rounds {
		if i >= 20 && t.now() > end {
			break
		}
		p := randomPair(t)
		key := p.String()
		got, ok := p.play(t, both)
		if !ok || slices.Contains(seen[key], got) {
			continue
		}
		for try := 0; try < 3 && !slices.Contains(seen[key], got); try++ {
			for _, o := range []order{firstBefore, secondBefore, refusedTry} {
				if one, ok := p.play(t, o); ok {
					seen[key] = append(seen[key], one)
				}
			}
		}
		if all := seen[key]; len(all) > 0 && !slices.Contains(all, got) {
			slices.Sort(all)
			t.Errorf("%v:\n%s\nwant what the calls do one after the other:\n%s", p, got, strings.Join(slices.Compact(all), "\n"))
			return
		}
	}
}

// besideTime is how long checkBeside looks. More time searches an engine that has changed.
const besideTime = 300 * time.Millisecond

// pair is a lock and two calls, each through one of the handles.
type pair struct {
	lock  start
	calls [2]call
	via   [2]*store.Store
}

func (p pair) String() string {
	where := "two handles"
	if p.via[0] == p.via[1] {
		where = "one handle"
	}
	return fmt.Sprintf("a lock that %s: %s beside %s, through %s", p.lock.name, p.calls[0].name, p.calls[1].name, where)
}

// randomPair returns a pair that the store offers.
func randomPair(t *trial) (p pair) {
	mutexes := t.first.Caps().MutexesOnly
	some := slices.DeleteFunc(slices.Clone(starts), func(s start) bool { return s.kinds && mutexes })
	p.lock = some[rand.N(len(some))]
	those := slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return c.of != "" && c.of != p.lock.name })
	for i := range p.calls {
		p.calls[i] = those[rand.N(len(those))]
		p.via[i] = t.handles()[rand.N(len(t.handles()))]
	}
	return p
}

// scene is a lock with two calls.
type scene struct {
	*trial
	held   store.Lease // as the owner's first attempt asked for it
	token  fence.Token // that it was granted, if it was
	second store.Lease // the owner's second attempt

	mu     sync.Mutex
	tokens map[string]fence.Token // that calls were granted
}

// start is what a lock is like before the calls.
type start struct {
	name  string
	kinds bool // only stores that keep every kind have it
	make  func(c *scene)
}

var starts = []start{
	{"nobody has", false, func(c *scene) { c.held = c.attempt(c.request(c.name(), c.long/2)) }},
	{"one attempt has", false, func(c *scene) { c.hold(c.request(c.name(), c.long/2)) }},
	{twoAttempts, false, func(c *scene) {
		c.hold(c.request(c.name(), c.long/2))
		c.second = c.attempt(c.held)
		if _, err := c.other().Acquire(c.Context(), store.AcquireRequest{Lease: c.second}); err != nil {
			c.Fatalf("acquire by the same owner in another attempt: %v", err)
		}
	}},
	{aWriter, true, func(c *scene) {
		w := c.writer(c.name())
		w.TTL = c.long / 2
		c.hold(w)
	}},
	{"has one of two permits taken", true, func(c *scene) { c.hold(c.of(store.Semaphore(2), 1, c.name(), c.long/2)) }},
}

const (
	twoAttempts = "two attempts of an owner have"
	aWriter     = "a writer has"
)

// hold makes the lease of the lock.
func (c *scene) hold(r store.Lease) {
	c.held = c.attempt(r)
	c.token = c.acquire(c.first, c.held).Token
}

// call is one kind of call. me names it, and the result says what it did.
type call struct {
	name  string
	of    string // the start that it makes sense for; empty: all
	tries bool   // another owner makes it, and may be refused while a request of the holder is looked at
	do    func(c *scene, s *store.Store, me string) string
}

// calls has no request of the same attempt again: a release that is sent again after a lost answer may
// end what that was granted.
var calls = []call{
	{name: "a renewal", do: func(c *scene, s *store.Store, _ string) string { return said(c.renew(s, c.held)) }},
	{name: "a longer renewal", do: func(c *scene, s *store.Store, _ string) string {
		r := c.held
		r.TTL = c.long
		return said(c.renew(s, r))
	}},
	{name: "another attempt", do: func(c *scene, s *store.Store, me string) string {
		r := c.attempt(c.held)
		r.Weight = min(r.Weight, 1) // a reader may ask for no more
		return c.asks(s, r, me)
	}},
	{name: "the undo of the attempt", do: func(c *scene, s *store.Store, _ string) string {
		return said(s.Release(c.Context(), undo(c.held)))
	}},
	{name: "the undo of the second attempt", of: twoAttempts, do: func(c *scene, s *store.Store, _ string) string {
		return said(s.Release(c.Context(), undo(c.second)))
	}},
	{name: "the release", do: func(c *scene, s *store.Store, _ string) string {
		return said(s.Release(c.Context(), store.ReleaseRequest{Lease: c.held, Renewed: true}))
	}},
	{name: "the downgrade", of: aWriter, do: func(c *scene, s *store.Store, me string) string {
		g, err := s.Downgrade(c.Context(), c.held)
		c.grants(me, g, err)
		return said(err)
	}},
	{name: "another owner", tries: true, do: func(c *scene, s *store.Store, me string) string {
		r := c.held
		r.Owner, r.Attempt, r.TTL, r.Weight = store.NewOwner(), "", c.long, min(r.Weight, 1)
		return c.asks(s, r, me)
	}},
}

// asks acquires the lock for r.
func (c *scene) asks(s *store.Store, r store.Lease, me string) string {
	g, err := s.Acquire(c.Context(), store.AcquireRequest{Lease: r})
	if err == nil {
		c.track(r)
	}
	c.grants(me, g, err)
	return said(err)
}

func (c *scene) grants(me string, g store.Grant, err error) {
	if err == nil {
		c.mu.Lock()
		c.tokens[me] = g.Token
		c.mu.Unlock()
	}
}

// said returns what err means.
func said(err error) string {
	for _, is := range []error{store.ErrNotHeld, store.ErrBusy, store.ErrKindMismatch, store.ErrInvalid, store.ErrQuorum} {
		if errors.Is(err, is) {
			return is.Error()
		}
	}
	return cmp.Or(err, errDone).Error()
}

var errDone = errors.New("done")

// order is that of the two calls.
type order int

const (
	both order = iota
	firstBefore
	secondBefore
	// refusedTry is firstBefore without calls of another owner, which are refused.
	refusedTry
)

// play makes the calls, and tells what they did and what is left. It returns false if that took so long
// that leases may have ended.
func (p pair) play(t *trial, o order) (told string, ok bool) {
	began := t.now()
	c := &scene{trial: t, tokens: make(map[string]fence.Token)}
	p.lock.make(c)
	var results [2]string
	carry := func(i int) {
		if o == refusedTry && p.calls[i].tries {
			results[i] = said(store.ErrBusy)
			return
		}
		results[i] = p.calls[i].do(c, p.via[i], fmt.Sprint("call ", i+1))
	}
	switch o {
	case firstBefore, refusedTry:
		carry(0)
		carry(1)
	case secondBefore:
		carry(1)
		carry(0)
	default:
		var all sync.WaitGroup
		late, after := rand.N(2), rand.N(pauses[rand.N(len(pauses))]+1)
		for i := range p.calls {
			all.Go(func() {
				if i == late {
					time.Sleep(after)
				}
				carry(i)
			})
		}
		all.Wait()
	}
	told = c.outcome(results)
	t.cleanUp()
	clear(t.held)
	return told, t.now().Sub(began) < c.held.TTL/2
}

// pauses are how long one of two calls may come after the other, at most.
var pauses = []time.Duration{0, 20 * time.Microsecond, 200 * time.Microsecond, 2 * time.Millisecond}

// outcome tells what the calls did, and what is left: first as it is, and then of the owner's attempts.
func (c *scene) outcome(results [2]string) string {
	lines := append(results[:], c.state())
	for _, s := range c.handles() {
		err := c.renew(s, c.held)
		if errors.Is(err, store.ErrNotHeld) { // perhaps of an earlier lease of the owner, which this handle knew
			err = c.renew(s, c.held)
		}
		lines = append(lines, "renew: "+said(err))
	}
	lines = append(lines, "undo: "+said(c.other().Release(c.Context(), undo(c.held))), c.state())
	return strings.Join(lines, "\n")
}

// state describes the holders of the lock and the order of the tokens. It leaves out owners and token
// values, since those are new for each lock.
func (c *scene) state() string {
	st := c.inspect(c.other(), c.held.Name)
	var grants []store.Holding
	if st.Held {
		grants = st.Holdings()
	}
	tokens := []fence.Token{c.token}
	for _, g := range c.tokens {
		tokens = append(tokens, g)
	}
	for _, h := range grants {
		tokens = append(tokens, h.Token)
	}
	slices.Sort(tokens)
	tokens = slices.Compact(tokens)
	var all []string
	for _, h := range grants {
		who, lasts := "another owner", ""
		if h.Holder.Owner == c.held.Owner {
			who = "the owner"
		}
		if 8*c.resolution < c.long {
			lasts = " for short"
			if h.ExpiresIn > c.long*3/4 {
				lasts = " for long"
			}
		}
		all = append(all, fmt.Sprintf("%s holds %d with token %d%s", who, max(h.Weight, 1), slices.Index(tokens, h.Token), lasts))
	}
	for who, g := range c.tokens {
		all = append(all, fmt.Sprintf("%s got token %d", who, slices.Index(tokens, g)))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}
