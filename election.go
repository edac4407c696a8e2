package leasehold

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/waits"
	"github.com/leasehold-dev/leasehold/store"
)

// Election chooses at most one leader among all that Run it, in this process and in
// others. It is a mutex: every store has it, and the leader is the holder of the
// lock of that name. An Election is immutable, cheap to make and safe for concurrent
// use.
type Election struct{ l *Lock }

// Election returns the election of that name. It sends nothing; an invalid name is
// reported by Run.
func (c *Client) Election(name string) *Election {
	return &Election{&Lock{c: c, name: name, take: claim{anew: true}}}
}

// Name returns the name of the election.
func (e *Election) Name() string { return e.l.name }

// With returns a copy of e in which the options set in o replace those of e. TTL is
// how long nobody leads after a leader has died; Notice is how long a leader has to
// stop after it was notified that it lost. RetryDelay also gives the pauses between the
// terms of a candidate, by default Backoff(100*time.Millisecond, 15*time.Second). Run
// refuses Owner, and ignores Tries.
func (e *Election) With(o LockOptions) *Election { return &Election{e.l.With(o)} }

// termDelay is the pause after the try-th term in a row that failed.
var termDelay = Backoff(100*time.Millisecond, 15*time.Second)

// Run makes the caller a candidate, and calls fn each time it is elected. It blocks
// until ctx ends, fn returns nil while it leads, or an error shows that trying again
// cannot help. It may be called several times at once, for several candidates.
//
// The context of fn ends when ctx does, and, with cause ErrLost, when leadership is
// lost: LockOptions.Notice before another candidate can lead. fn has to stop then and
// return: until it has, this candidate neither resigns nor contends again. Every later term
// has a larger l.Token. After a process was stopped, or its machine was suspended, the
// context of a term that is over may take a moment to end: l.Err reads the clock.
//
// If leadership is lost, if fn returns an error, or if the store cannot be reached, Run
// logs that and contends again after a pause. The pause grows while that goes on, and is
// short again after a term of at least one TTL. Between those pauses it is always
// either leading or in the queue.
//
// When ctx ends, Run resigns, so that the next candidate leads at once, and returns an
// error that matches ctx.Err(). When fn returns nil while it leads, Run resigns and
// returns nil, also if the store does not confirm that. Errors that match ErrInvalid, ErrUnsupported, ErrKindMismatch or
// store.ErrClosed are returned at once. If fn panics or calls runtime.Goexit, Run
// resigns on the way out.
//
// If ctx carries a lease of the election's lock that is held, as the context of a term does, Run
// returns an error that matches ErrInvalid: such a candidate would wait for its own caller.
func (e *Election) Run(ctx context.Context, fn func(ctx context.Context, l *Lease) error) error {
	mustHave(ctx)
	delay, c := termDelay, e.l.c
	if c.holds.CarriedAndHeld(ctx, e.l.name) != nil {
		return invalid("election %q: the context is of the present leader, or of another lease of its lock, so this candidate would wait for its own caller: run it with another context", e.l.name)
	}
	if e.l.o.RetryDelay != nil {
		delay = e.l.o.RetryDelay
	}
	for try := 1; ; try++ {
		t := e.term(ctx, fn)
		switch {
		case ctx.Err() != nil && errors.Is(t.err, ctx.Err()):
			return t.err
		case ctx.Err() != nil:
			return waits.GaveUp(ctx, t.err)
		case t.finished || !t.led && hopeless(t.err) || !candidacyRepeated:
			return t.err
		case t.long:
			try = 1
		}
		pause := max(delay(try), time.Millisecond)
		c.holds.Log.Warn("contending again", "election", e.l.name, "led", t.led, "pause", pause, "err", t.err)
		clock.Sleep(ctx, pause)
	}
}

// term is what came of one candidacy.
type term struct {
	led      bool
	long     bool // it led for a TTL or longer
	finished bool // the leader is done, and did not fail
	err      error
}

// term waits until e is won, and leads.
func (e *Election) term(ctx context.Context, fn func(context.Context, *Lease) error) (t term) {
	lease, err := e.l.wait(ctx, 0, true)
	if err != nil {
		return term{err: err}
	}
	t.led = true
	began, failed := e.l.c.holds.Clock.Now(), true
	t.err = e.l.during(ctx, lease, func(ctx context.Context, l *Lease) error {
		err := fn(ctx, l)
		failed = err != nil
		return err
	})
	t.long = e.l.c.holds.Clock.Now().Sub(began) >= lease.held.Request().TTL
	if t.finished = !failed && !errors.Is(t.err, ErrLost); t.finished {
		t.err = nil // Release has logged it if the lock ends by its TTL
	}
	return t
}

// hopeless reports whether asking again cannot help.
func hopeless(err error) bool {
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrUnsupported) || errors.Is(err, ErrKindMismatch) || errors.Is(err, store.ErrClosed)
}

// Leader describes the leader of an election. The zero Leader means that nobody leads.
type Leader struct {
	// Holder is the leader. Its Since is when it became a candidate for this term, by
	// its own clock.
	Holder Holder
	// Token is the fencing token of the term.
	Token Token
	// Since is when the leader was elected, by the store's clock. If the store cannot
	// tell, it is Holder.Since. It is zero if that is unknown, too.
	Since time.Time
	// ExpiresIn is the longest that the leader can go on without a renewal.
	ExpiresIn time.Duration
	// Undecided reports that Holder may lead: that depends on servers that do not answer.
	// See store.State.Undecided.
	Undecided bool
}

// Vacant reports that nobody leads.
func (l Leader) Vacant() bool { return l.Holder.Owner == "" }

// is reports whether o is the same term. While some servers do not answer, the
// others may show another token of the term.
func (l Leader) is(o Leader) bool {
	return l.Holder.Owner == o.Holder.Owner && (l.Token == o.Token || l.Undecided || o.Undecided)
}

// Leader asks the store who leads. It blocks for the answer. The answer may be out of
// date when it arrives: to do something only while leading, use Run. If servers that do not
// answer decide who leads, it returns the first of those that may lead, as Undecided.
//
// The error matches ErrKindMismatch if the name is in use as another kind of lock.
// Otherwise it is one of the store's Inspect.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	mustHave(ctx)
	leaders, err := e.leaders(ctx)
	return leaders[0], err
}

// leaders returns the leader, which may be the zero Leader, or all those that may lead.
func (e *Election) leaders(ctx context.Context) ([]Leader, error) {
	now := time.Now()
	st, err := e.l.c.store.Inspect(ctx, e.l.name)
	if err != nil || st.Free() {
		return []Leader{{}}, err
	}
	if !st.Kind.IsMutex() {
		return []Leader{{}}, &store.KindError{Name: e.l.name, InUse: st.Kind, Holder: st.Holder}
	}
	var leaders []Leader
	held := len(st.Holdings())
	for i, h := range st.Leases() {
		if !h.Kind.IsMutex() { // it is undecided, and its holder does not lead
			continue
		}
		l := Leader{Holder: h.Holder, Token: h.Token, Since: h.Holder.Since, ExpiresIn: h.ExpiresIn, Undecided: i >= held}
		if h.HeldFor > 0 {
			l.Since = now.Add(-h.HeldFor).Round(0) // a time of day
		}
		leaders = append(leaders, l)
	}
	if len(leaders) == 0 {
		leaders = []Leader{{}}
	}
	return leaders, nil
}

// Observe returns an iterator of leaders: the present one, which may be vacant, and
// then each change. It ends when ctx does, and blocks in between.
//
// Observe asks the store about 30 times per TTL, at most ten times a second, so it does
// not see a term that began and ended in between. An error is yielded once, with a
// zero Leader, while the store cannot be asked; the iterator goes on, and yields the
// leader again when there is an answer. An error that asking again cannot mend ends the
// iteration.
//
// A leader that becomes undecided is still the leader for Observe, until it certainly is
// not. A leader that is undecided when Observe first sees it is yielded twice if it
// turns out to lead.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	mustHave(ctx)
	return func(yield func(Leader, error) bool) {
		life, err := e.l.o.life()
		if err != nil {
			yield(Leader{}, err)
			return
		}
		var told Leader
		known, failed := false, false
		for ctx.Err() == nil {
			leaders, err := e.leaders(ctx)
			l := leaders[0]
			if i := slices.IndexFunc(leaders, told.is); i >= 0 {
				l = leaders[i]
			}
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				if !failed && !yield(Leader{}, err) || hopeless(err) {
					return
				}
				known, failed = false, true
			case !known || !l.is(told) || told.Undecided && !l.Undecided:
				told, known, failed = l, true, false
				if !yield(l, nil) {
					return
				}
			}
			clock.Sleep(ctx, max(life.TTL/30, 100*time.Millisecond))
		}
	}
}
