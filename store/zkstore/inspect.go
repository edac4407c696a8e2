package zkstore

import (
	"context"
	"sort"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// Inspect implements store.Store. Nobody can see how much of a session is left, so
// ExpiresIn is the TTL.
func (s *Store) Inspect(ctx context.Context, name string) (store.State, error) {
	if err := store.CheckName(name); err != nil {
		return store.State{}, err
	}
	if err := s.gate.Enter(); err != nil {
		return store.State{}, err
	}
	defer s.gate.Leave()
	ctx, cancel := s.limited(ctx)
	defer cancel()
	ss, leave, err := s.anySession(ctx)
	if err != nil {
		return store.State{}, s.failed(ctx, "inspect", name, err)
	}
	defer leave()
	if err := ss.sync(ctx); err != nil {
		return store.State{}, s.failed(ctx, "inspect", name, err)
	}
	st, err := ss.state(ctx, name, store.MaxQueue)
	if err != nil {
		return store.State{}, s.failed(ctx, "inspect", name, err)
	}
	return st, nil
}

// state reads a lock, with at most that many waiters.
func (ss *session) state(ctx context.Context, name string, waiters int) (store.State, error) {
	st := store.State{Name: name}
	s := ss.s
	q, err := ss.children(ctx, s.dir(name))
	if err != nil || len(q) == 0 {
		return st, err
	}
	q = q[:min(len(q), 1+waiters)]
	nodes, there, errs := make([]node, len(q)), make([]bool, len(q)), make([]error, len(q))
	each(len(q), func(i int) { nodes[i], there[i], errs[i] = ss.get(ctx, s.dir(name)+"/"+q[i].name) })
	for i, c := range q {
		if errs[i] != nil {
			return st, errs[i]
		}
		if !there[i] {
			continue // it has left since, and the next one is the first
		}
		rec, ours := decodeRecord(nodes[i].data)
		h, expires := s.holder(c, rec, ours)
		if !st.Held {
			st.Held, st.Holder, st.ExpiresIn, st.Token = true, h, expires, tokenOf(rec, nodes[i].czxid)
			continue
		}
		st.Queue = append(st.Queue, store.Place{Holder: h, ExpiresIn: expires})
	}
	return st, nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]store.State, error) {
	if err := s.gate.Enter(); err != nil {
		return nil, err
	}
	defer s.gate.Leave()
	ctx, cancel := s.limited(ctx)
	defer cancel()
	states, err := s.list(ctx, prefix)
	if err != nil {
		return nil, s.failed(ctx, "list", "", err)
	}
	return states, nil
}

func (s *Store) list(ctx context.Context, prefix string) ([]store.State, error) {
	ss, leave, err := s.anySession(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := ss.sync(ctx); err != nil {
		return nil, err
	}
	nodes, err := ss.list(ctx, s.o.Base)
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
	each(len(names), func(i int) { all[i], errs[i] = ss.state(ctx, names[i], 0) })
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
