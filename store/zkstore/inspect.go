package zkstore

import (
	"context"
	"sort"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// Inspect implements driver.Engine. Nobody can see how much of a session is left, so
// ExpiresIn is the TTL.
func (s *engine) Inspect(ctx context.Context, name string) (store.State, error) {
	t, leave, err := s.anyTree(ctx)
	if err != nil {
		return store.State{}, s.failed(ctx, "inspect", name, err)
	}
	defer leave()
	if err := t.Sync(ctx); err != nil {
		return store.State{}, s.failed(ctx, "inspect", name, err)
	}
	st, err := t.state(ctx, name, store.MaxQueue)
	if err != nil {
		return store.State{}, s.failed(ctx, "inspect", name, err)
	}
	answers, err := t.Ask(ctx, session.Read(t.notesOf(t.dir(name))))
	if err != nil {
		return store.State{}, s.failed(ctx, "inspect", name, err)
	}
	n, err := notesFrom(answers[0])
	if err != nil {
		return store.State{}, s.failed(ctx, "inspect", name, err)
	}
	st.Broken = decodeNotes(n.Data).shown(n.Changed, time.Now())
	return st, nil
}

// List implements driver.Engine.
func (s *engine) List(ctx context.Context, prefix string) ([]store.State, error) {
	states, err := s.list(ctx, prefix)
	if err != nil {
		return nil, s.failed(ctx, "list", "", err)
	}
	return states, nil
}

func (s *engine) list(ctx context.Context, prefix string) ([]store.State, error) {
	t, leave, err := s.anyTree(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
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
