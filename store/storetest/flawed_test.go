package storetest

import (
	"cmp"
	"context"
	"errors"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// flaw names one thing that a store gets wrong. The empty flaw is none.
type flaw string

// flawed is a plain store in memory, written without the rule, that has one flaw on request.
// Handles that share a core share its locks.
type flawed struct {
	store.Engine // nil: the suite calls nothing else
	*core
	flaw flaw
}

type core struct {
	mu    sync.Mutex
	locks map[string]*lock
}

type lock struct {
	owner, meta string // no owner: free
	made        string // the attempt that was granted it; empty once another attempt has joined
	last        string // the owner whose lease expired
	count       int
	token       fence.Token
	top         fence.Token // the last one that was granted
	expiry      clock.Instant
	refused     []store.Lease          // only a flaw grants them
	drawn       map[string]fence.Token // only for a flaw: by owner
	queue       []*place
}

func newCore() *core { return &core{locks: make(map[string]*lock)} }

func (s *flawed) is(f flaw) bool { return s.flaw == f }

// look returns the lock called name, free if its lease has expired.
func (s *flawed) look(name string) *lock {
	l := s.locks[name]
	if l == nil {
		if s.is("tokens are forgotten after 50 names") && len(s.locks) >= 50 {
			for other, o := range s.locks {
				if o.owner == "" && len(o.queue) == 0 {
					delete(s.locks, other)
				}
			}
		}
		l = &lock{}
		s.locks[name] = l
	}
	if l.owner != "" && clock.System().Now() >= l.expiry && !s.is("leases never end") {
		l.owner, l.last = "", l.owner
		if s.is("tokens start again after an expiry") {
			l.token, l.top = 0, 0
		}
	}
	return l
}

// read is look for a call that changes the lock.
func (s *flawed) read(name string) *lock {
	l := s.look(name)
	if s.is("calls write back what they read") {
		was := *l
		was.queue = slices.Clone(l.queue)
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
		*l = was
	}
	return l
}

// give grants the free lock to r.
func (s *flawed) give(l *lock, r store.Lease) {
	l.owner, l.made, l.meta, l.count, l.expiry = r.Owner, r.Attempt, r.Meta, 1, s.expiry(r.TTL)
	l.token = max(l.token, l.top) + 1
	if s.is("an owner keeps its token") {
		if l.drawn == nil {
			l.drawn = make(map[string]fence.Token)
		}
		l.token = cmp.Or(l.drawn[r.Owner], l.token)
		l.drawn[r.Owner] = l.token
	}
	l.top = max(l.token, l.top)
}

func (s *flawed) expiry(ttl time.Duration) clock.Instant {
	now := clock.System().Now()
	if s.is("leases end early") {
		ttl /= 10
	}
	if s.is("TTLs are cut to ten seconds") && ttl > 10*time.Second {
		ttl = ttl.Truncate(10 * time.Second)
	}
	if unit := s.Caps().Resolution; unit > 0 {
		ttl = (ttl + unit - 1) / unit * unit
	}
	if t := now + clock.Instant(ttl); t >= now || s.is("long TTLs wrap round") { // Add saturates
		return t
	}
	return math.MaxInt64
}

// key returns the name by which the engine knows the lock.
func (s *flawed) key(name string) string {
	switch {
	case s.is("names end at a NUL"):
		name, _, _ = strings.Cut(name, "\x00")
	case s.is("names are text"):
		name = strings.ToValidUTF8(name, "?")
	case s.is("names are cut"):
		name = name[:min(len(name), 255)]
	case s.is("names ignore case"):
		name = strings.ToLower(name)
	case s.is("names are escaped, and no two differ"):
		name = strings.NewReplacer("/", "_", " ", "_", ":", "_").Replace(name)
	case s.is("names ignore trailing space"):
		name = strings.TrimRight(name, " ")
	}
	return name
}

func (s *flawed) same(a, b string) bool {
	switch {
	case s.is("owners ignore case"):
		return strings.EqualFold(a, b)
	case s.is("owners are patterns"):
		ok, _ := path.Match(b, a)
		return ok || a == b
	case s.is("owners are cut"):
		return a[:min(len(a), 64)] == b[:min(len(b), 64)]
	}
	return a == b
}

func (s *flawed) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if err := s.require(r.Lease); err != nil {
		return store.Grant{}, err
	}
	if s.is("a context that ends midway leaves the lease") {
		g, err := s.grant(r)
		time.Sleep(2 * time.Millisecond) // the reply is on its way
		return g, cmp.Or(ctx.Err(), err)
	}
	g, err := s.grant(r)
	if err == nil && s.is("a cancelled attempt ends the lease") {
		time.Sleep(2 * time.Millisecond) // the reply is on its way
		if err = ctx.Err(); err != nil {
			s.Release(context.WithoutCancel(ctx), store.ReleaseRequest{Lease: store.Lease{Name: r.Name, Owner: r.Owner}})
		}
	}
	return g, err
}

func (s *flawed) grant(r store.AcquireRequest) (store.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.read(s.key(r.Name))
	if l.owner != "" && s.same(l.owner, r.Owner) && !s.is("asking again is refused") {
		return s.repeat(l, r.Lease), nil
	}
	if l.owner != "" && !s.is("two are granted") {
		l.refused = append(l.refused, r.Lease)
		return store.Grant{}, s.busy(l, r.Lease)
	}
	if s.is("looks, then takes") {
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
	}
	if s.is("meta has to be JSON") && !strings.HasPrefix(r.Meta, "{") {
		return store.Grant{}, errors.New("meta is not JSON")
	}
	s.give(l, r.Lease)
	switch {
	case s.is("tokens repeat"):
		l.token = 7
	case s.is("no tokens"):
		l.token = 0
	case s.is("tokens are too large"):
		l.token |= 1 << 53
	case s.is("holders are forgotten"):
		l.meta = ""
	case s.is("holders are cut"):
		l.meta = l.meta[:min(len(l.meta), 255)]
	}
	return store.Grant{Token: l.token}, nil
}

func (s *flawed) repeat(l *lock, r store.Lease) store.Grant {
	l.count++
	if r.Attempt != l.made && !s.is("joining goes unnoticed") {
		l.made = ""
	}
	expiry := s.expiry(r.TTL)
	if !s.is("asking again shrinks") {
		expiry = max(expiry, l.expiry)
	}
	if !s.is("asking again does not extend") {
		l.expiry = expiry
	}
	if s.is("asking again draws a token") {
		l.token++
	}
	return store.Grant{Token: l.token}
}

func (s *flawed) busy(l *lock, r store.Lease) error {
	e := &store.BusyError{Name: r.Name, Holder: store.DecodeHolder(l.owner, l.meta), ExpiresIn: s.left(l)}
	switch {
	case s.is("busy says nothing"):
		return store.ErrBusy
	case s.is("busy names nobody"):
		e.Holder = store.Holder{}
	case s.is("busy names the asker"):
		e.Holder = store.DecodeHolder(r.Owner, r.Meta)
	case s.is("busy for no time"):
		e.ExpiresIn = 0
	}
	return e
}

func (s *flawed) left(l *lock) time.Duration {
	if s.is("time stands still") {
		return time.Second
	}
	return max(l.expiry.Sub(clock.System().Now()), 1) // it had not expired a moment ago
}

func (s *flawed) Renew(ctx context.Context, leases []store.Lease) []error {
	if s.is("a batch has one answer") {
		return []error{nil}
	}
	errs := make([]error, len(leases))
	for i, r := range leases {
		if i >= 100 && s.is("a batch is cut") {
			break
		}
		errs[i] = s.renew(ctx, r)
		if errs[i] != nil && s.is("a batch stops at an error") {
			break
		}
	}
	if s.is("a batch is out of order") {
		slices.Reverse(errs)
	}
	return errs
}

func (s *flawed) renew(ctx context.Context, r store.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.read(s.key(r.Name))
	if l.owner == "" && l.last == r.Owner && s.is("renewals revive") {
		l.owner, l.count = r.Owner, 1
	}
	switch {
	case l.owner != "" && s.same(l.owner, r.Owner):
	case l.owner == "" && s.is("renewals create"):
		l.owner, l.meta, l.count = r.Owner, r.Meta, 1
	case l.owner != "" && s.is("anybody renews"):
	default:
		return store.ErrNotHeld
	}
	if s.is("renewals look, then write") {
		s.mu.Unlock()
		time.Sleep(50 * time.Microsecond) // others get their turn, also on a busy machine
		s.mu.Lock()
		l.owner, l.meta = r.Owner, r.Meta
	}
	if s.is("renewals forget who joined") {
		made := l.made
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
		l.made = made
	}
	expiry := s.expiry(r.TTL)
	if !s.is("renewals shrink") {
		expiry = max(expiry, l.expiry)
	}
	if !s.is("renewals do nothing") {
		l.expiry = expiry
	}
	if s.is("renewals draw a token") {
		l.token++
	}
	return nil
}

func (s *flawed) Release(ctx context.Context, r store.ReleaseRequest) error {
	if err := cmp.Or(store.CheckName(r.Name), store.CheckOwner(r.Owner)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.read(s.key(r.Name))
	ofAnother := r.Attempt != "" && l.made != r.Attempt && (l.made != "" || r.Undo) && !s.is("attempts are not told apart")
	switch {
	case l.owner != "" && s.same(l.owner, r.Owner) && !ofAnother:
	case l.owner != "" && s.is("anybody releases"):
	case s.is("every release succeeds"):
		return nil
	case l.owner == "" && s.is("a release of nothing succeeds"):
		return nil
	default:
		return store.ErrNotHeld
	}
	if s.is("releases look, then delete") {
		s.mu.Unlock()
		time.Sleep(50 * time.Microsecond) // others get their turn, also on a busy machine
		s.mu.Lock()
	}
	if l.count--; l.count > 0 && s.is("releases count") {
		return nil
	}
	l.owner = ""
	if s.is("tokens start again after a release") {
		l.token, l.top = 0, 0
	}
	if s.is("refused attempts get it later") && len(l.refused) > 0 {
		s.give(l, l.refused[0])
	}
	s.handOn(l)
	return nil
}

func (s *flawed) Inspect(ctx context.Context, name string) (store.State, error) {
	if err := store.CheckName(name); err != nil {
		return store.State{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.look(s.key(name))
	st := s.state(name, l)
	if l.owner != "" && s.is("looking releases") {
		l.owner = ""
	}
	if l.owner == "" && s.is("a free lock has a holder") {
		st.Holder.Owner = "somebody"
	}
	st.Queue = s.shown(l)
	if s.is("what is known is undecided") && l.owner != "" {
		st.Undecided = st.Holdings()
	}
	return st, nil
}

func (s *flawed) state(name string, l *lock) store.State {
	if l.owner == "" {
		return store.State{Name: name}
	}
	st := store.State{Name: name, Held: true, Holder: store.DecodeHolder(l.owner, l.meta), Token: l.token, ExpiresIn: s.left(l)}
	if s.is("locks are held from when they were asked for") {
		st.HeldFor = time.Since(st.Holder.Since)
	}
	if s.is("tokens are not shown") {
		st.Token = 0
	}
	return st
}

func (s *flawed) List(ctx context.Context, prefix string) ([]store.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []store.State
	for name := range s.locks {
		matches := strings.HasPrefix(name, s.key(prefix))
		switch {
		case s.is("prefixes are patterns"):
			matches = glob(prefix, name)
		case s.is("prefixes ignore case"):
			matches = strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix))
		}
		if !matches {
			continue
		}
		l := s.locks[name]
		if s.is("lists show what is over") {
			list = append(list, store.State{Name: name, Held: true, Holder: store.Holder{Owner: cmp.Or(l.owner, "gone")}, Token: l.token, ExpiresIn: time.Second})
			continue
		}
		if st := s.state(name, s.look(name)); st.Held {
			if s.is("lists show the queue") {
				st.Queue = s.shown(l)
			}
			list = append(list, st)
		}
	}
	slices.SortFunc(list, func(a, b store.State) int { return cmp.Compare(a.Name, b.Name) })
	if s.is("lists are not sorted") {
		slices.Reverse(list)
	}
	if s.is("lists are cut") && len(list) > 5 {
		list = list[:5]
	}
	if s.is("lists end at 1,000") && len(list) > 1000 {
		list = list[:1000]
	}
	return list, nil
}

// glob reports whether pattern, with * and ?, matches the start of name.
func glob(pattern, name string) bool {
	for ; pattern != ""; pattern, name = pattern[1:], name[1:] {
		if pattern[0] == '*' {
			for i := range len(name) + 1 {
				if glob(pattern[1:], name[i:]) {
					return true
				}
			}
			return false
		}
		if name == "" || pattern[0] != '?' && pattern[0] != name[0] {
			return false
		}
	}
	return true
}

func (s *flawed) Caps() store.Caps {
	c := store.Caps{Engine: "flawed", Nodes: 1, Quorum: 1, Reach: "process", Clock: "this process's own clock", MutexesOnly: true, NoBreaks: true}
	switch {
	case s.is("less than a quorum"):
		c.Nodes, c.Quorum = 5, 2
	case s.is("no reach"):
		c.Reach = ""
	case s.is("has a maximum TTL"):
		c.MaxTTL = 40 * time.Second
	case s.is("rounds TTLs and has a minimum"):
		c.MinTTL, c.Resolution = 200*time.Millisecond, 150*time.Millisecond
	}
	return c
}

// require checks what a lock requires.
func (s *flawed) require(r store.Lease) error {
	if s.is("requirements are ignored") {
		return nil
	}
	return r.CheckClass(s.Caps())
}

func (s *flawed) Close() error {
	if s.is("closing fails") {
		return errors.New("it is closed already")
	}
	if s.is("close ends the leases") {
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(s.locks)
	}
	return nil
}
