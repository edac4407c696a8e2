package leasehold

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

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

// is reports whether o is the same term. While servers do not answer, those that do may show
// another token of it.
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
	st, err := e.l.c.store.Inspect(ctx, e.l.r.name)
	if err != nil || st.Free() {
		return []Leader{{}}, err
	}
	if !st.Kind.IsMutex() {
		return []Leader{{}}, &store.KindError{Name: e.l.r.name, InUse: st.Kind, Holder: st.Holder}
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
		life, err := e.l.r.o.life()
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
