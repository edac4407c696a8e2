package zkstore

import (
	"context"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// state reads a lock, with at most that many waiters.
func (t tree) state(ctx context.Context, name string, waiters int) (store.State, error) {
	st := store.State{Name: name}
	q, err := t.children(ctx, t.dir(name))
	if err != nil || len(q) == 0 {
		return st, err
	}
	q = q[:min(len(q), 1+waiters)]
	nodes, there, errs := make([]session.Node, len(q)), make([]bool, len(q)), make([]error, len(q))
	each(len(q), func(i int) { nodes[i], there[i], errs[i] = t.Get(ctx, t.dir(name)+"/"+q[i].name) })
	for i, c := range q {
		if errs[i] != nil {
			return st, errs[i]
		}
		if !there[i] {
			continue // it has left since, and the next one is the first
		}
		rec, ours := decodeRecord(nodes[i].Data)
		h, expires := t.holder(c, rec, ours)
		if !st.Held {
			st.Held, st.Holder, st.ExpiresIn, st.Token = true, h, expires, tokenOf(rec, nodes[i].Czxid)
			continue
		}
		st.Queue = append(st.Queue, store.Place{Holder: h, ExpiresIn: expires})
	}
	return st, nil
}

// busyError describes the holder of a lock.
func (t tree) busyError(name string, c numbered, rec record, ours bool) *store.BusyError {
	h, expires := t.holder(c, rec, ours)
	return &store.BusyError{Name: name, Holder: h, ExpiresIn: expires}
}

// holder describes the owner of a place, and how long its lease lasts at most.
func (t tree) holder(c numbered, rec record, ours bool) (store.Holder, time.Duration) {
	if ours {
		return store.DecodeHolder(rec.Owner, rec.meta()), rec.ttl()
	}
	// Nobody can see the session's timeout.
	return store.Holder{Owner: strings.TrimSuffix(c.name, c.digits()), Foreign: true}, t.most
}
