package zkstore

import (
	"context"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// state reads a lock, with at most that many waiters.
func (t tree) state(ctx context.Context, name string, waiters int) (store.State, error) {
	st := store.State{Name: name}
	line, err := t.children(ctx, t.dir(name), false)
	if err != nil || len(line.queue) == 0 {
		return st, err
	}
	q := line.queue
	q = q[:min(len(q), q.mayHold()+waiters)]
	nodes, there, errs := make([]session.Node, len(q)), make([]bool, len(q)), make([]error, len(q))
	each(len(q), func(i int) { nodes[i], there[i], errs[i] = t.Get(ctx, t.dir(name)+"/"+q[i].name) })
	var left queue     // those that are still there
	var before *record // of the last holder that others agree with, once they have
	for i, c := range q {
		if errs[i] != nil {
			return st, errs[i]
		}
		if !there[i] {
			continue // it has left since, and the next one may hold the lock
		}
		rec, ours := decodeRecord(nodes[i].Data)
		h, expires := t.holder(c, rec, ours)
		if left = append(left, c); !left.held(len(left)-1, rec) {
			if waiters > 0 {
				st.Queue = append(st.Queue, store.Place{Holder: h, ExpiresIn: expires})
			}
			continue
		}
		if c.needsOthers() && c.isNative() {
			switch {
			case rec.Agreed:
			case before == nil:
				rec = rec.first(c, nodes[i].Czxid)
			default:
				rec = rec.behind(*before, left, len(left)-1)
			}
			before = &rec
		}
		token := tokenOf(rec, nodes[i].Czxid)
		st.Holders = append(st.Holders, store.Holding{Holder: h, Token: token, ExpiresIn: expires, Weight: c.weight, Slot: rec.slot(c)})
	}
	if len(st.Holders) > 0 {
		first := st.Holders[0]
		st.Held, st.Kind, st.Holder, st.ExpiresIn, st.Token = true, kindOf(left[0].spec), first.Holder, first.ExpiresIn, first.Token
	}
	if st.Kind.IsMutex() {
		st.Kind = store.Kind{}
	}
	if st.Kind.IsMutex() && len(st.Holders) == 1 {
		st.Holders = nil
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
		return h, rec.ttl()
	}
	// Nobody can see the session's timeout.
	return store.Holder{Owner: strings.TrimSuffix(c.name, c.digits()), Foreign: true}, t.most
}
