package zkstore

import (
	"context"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// Inspect implements driver.Engine. Nobody can see how much of a session is left, so
// ExpiresIn is the TTL.
func (s *engine) Inspect(ctx context.Context, name string) (st store.State, err error) {
	defer func() { err = s.failed(ctx, "inspect", name, err) }()
	t, err := s.anyTree(ctx)
	if err != nil {
		return st, err
	}
	if err := t.Sync(ctx); err != nil {
		return st, err
	}
	if st, err = t.state(ctx, name, store.MaxQueue); err != nil {
		return st, err
	}
	n, _, err := t.node(ctx, t.notesOf(t.dir(name)))
	st.Broken = decodeJSON[notes](n.Data).shown(n.Changed, time.Now())
	return st, err
}

// List implements driver.Engine.
func (s *engine) List(ctx context.Context, prefix string) (_ []store.State, err error) {
	defer func() { err = s.failed(ctx, "list", "", err) }()
	t, err := s.anyTree(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.Sync(ctx); err != nil {
		return nil, err
	}
	nodes, err := t.List(ctx, s.o.Base)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range nodes {
		if name, ok := unescape(n); ok && strings.HasPrefix(name, prefix) && store.CheckName(name) == nil {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	all, errs := make([]store.State, len(names)), make([]error, len(names))
	each(len(names), func(i int) { all[i], errs[i] = t.state(ctx, names[i], 0) })
	states := []store.State{}
	for i, st := range all {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if st.Held {
			states = append(states, st)
		}
	}
	return states, nil
}

// state reads a lock, with at most that many waiters.
func (t tree) state(ctx context.Context, name string, waiters int) (store.State, error) {
	st := store.State{Name: name}
	line, err := t.children(ctx, t.dir(name))
	if err != nil || len(line.queue) == 0 {
		return st, err
	}
	q := line.queue
	q = q[:min(len(q), q.holders()+waiters)]
	reads := make([]zk.Request, len(q))
	for i, c := range q {
		reads[i] = zk.Read(t.dir(name) + "/" + c.name)
	}
	answers, err := t.Ask(ctx, reads...)
	if err != nil {
		return st, err
	}
	var left queue     // those that are still there
	var before *record // of the last holder that others agree with, once they have
	for i, c := range q {
		n, there, err := answers[i].Node()
		if err != nil {
			return st, err
		}
		if !there {
			continue // it has left since, and the next one may hold the lock
		}
		rec, ours := decodeRecord(n.Data)
		h, expires := t.holder(c, rec, ours)
		if left = append(left, c); len(left) > left.holders() {
			if waiters > 0 {
				st.Queue = append(st.Queue, store.Place{Holder: h, ExpiresIn: expires})
			}
			continue
		}
		if c.needsOthers() && c.isNative() {
			switch {
			case rec.Agreed:
			case before == nil:
				rec = rec.first(c, n.Czxid)
			default:
				rec = rec.behind(*before, left, len(left)-1)
			}
			before = &rec
		}
		token := tokenOf(rec, n.Czxid)
		st.Holders = append(st.Holders, store.Holding{Holder: h, Token: token, ExpiresIn: expires, Weight: c.weight, Slot: rec.slot(c)})
	}
	if len(st.Holders) > 0 {
		first := st.Holders[0]
		st.Held, st.Kind, st.Holder, st.ExpiresIn, st.Token = true, kindOf(left[0].spec), first.Holder, first.ExpiresIn, first.Token
	}
	if st.Kind.IsMutex() {
		if st.Kind = (store.Kind{}); len(st.Holders) == 1 {
			st.Holders = nil
		}
	}
	return st, nil
}

// refusal returns the error for an owner that has q[me] and has to wait, or asks for a lock
// of another kind. data is that of the place that blocks it.
func (t tree) refusal(l store.Lease, q queue, me int, data []byte) error {
	rec, ours := decodeRecord(data)
	if q.owns(me).Verdict == rule.Mismatch {
		h, _ := t.holder(q[0], rec, ours)
		return &store.KindError{Name: l.Name, Asked: l.Kind, InUse: kindOf(q[0].spec), Holder: h}
	}
	c, waits := q.blocker(me)
	busy := t.busyError(l.Name, c, rec, ours)
	busy.Holder.Waiting = waits
	return busy
}

// busyError describes the holder of a lock.
func (t tree) busyError(name string, c numbered, rec record, ours bool) *store.BusyError {
	h, expires := t.holder(c, rec, ours)
	return &store.BusyError{Name: name, Holder: h, ExpiresIn: expires}
}

// holder describes the owner of a place, and how long its lease lasts at most.
func (t tree) holder(c numbered, rec record, ours bool) (store.Holder, time.Duration) {
	if ours {
		h := store.DecodeHolder(rec.Owner, rec.meta())
		h.Broken = rec.Broken
		return h, rec.TTL
	}
	// Nobody can see the session's timeout.
	return store.Holder{Owner: strings.TrimSuffix(c.name, c.digits()), Foreign: true}, t.most
}

// atOnce is how many leases are renewed, or locks are read, at the same time.
const atOnce = 32

// each calls do for 0 to n-1, some of them at the same time.
func each(n int, do func(i int)) {
	var wg sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i := range n {
		room <- struct{}{}
		wg.Go(func() {
			do(i)
			<-room
		})
	}
	wg.Wait()
}
