package etcdstore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/store"
)

// Inspect implements store.Store.
func (s *Store) Inspect(ctx context.Context, name string) (store.State, error) {
	if err := store.CheckName(name); err != nil {
		return store.State{}, err
	}
	if err := s.gate.Enter(); err != nil {
		return store.State{}, err
	}
	defer s.gate.Leave()
	if err := ctx.Err(); err != nil {
		return store.State{}, s.failed(ctx, "inspect", name, false, err)
	}
	for {
		r, _, err := s.commit(ctx, txn{then: []clientv3.Op{byAge(s.layout.lock(name), store.MaxQueue+1)}})
		if r == nil {
			return store.State{}, s.refused(ctx, "inspect", name, false, err)
		}
		all := entriesOf(r.Responses[0].GetResponseRange().Kvs)
		st := s.state(name, all)
		if !st.Held {
			return st, nil
		}
		if st.ExpiresIn, err = s.left(ctx, all[0]); err != nil {
			return store.State{}, s.failed(ctx, "inspect", name, false, err)
		}
		if st.ExpiresIn != 0 {
			for _, e := range all[1:] {
				st.Queue = append(st.Queue, store.Place{Holder: e.holder(), ExpiresIn: e.lasts()})
			}
			return st, nil
		}
		// The lease has just ended.
	}
}

// state returns the state of a lock whose places are in order, without the queue.
func (s *core) state(name string, all []entry) store.State {
	st := store.State{Name: name}
	if len(all) > 0 {
		st.Held, st.Holder, st.Token, st.ExpiresIn = true, all[0].holder(), all[0].token(s.floor), all[0].lasts()
	}
	return st
}

// List implements store.Store. It reads the keys in pages, all of one revision.
// State.ExpiresIn is how long the leases can last at most; only for those of native
// clients it is asked.
func (s *Store) List(ctx context.Context, prefix string) ([]store.State, error) {
	if err := s.gate.Enter(); err != nil {
		return nil, err
	}
	defer s.gate.Leave()
	if err := ctx.Err(); err != nil {
		return nil, s.failed(ctx, "list", "", false, err)
	}
	from := s.layout.locks(prefix)
	end := clientv3.GetPrefixRangeEnd(from)
	const page = 500
	locks := make(map[string][]entry)
	for revision := int64(0); ; {
		var r *clientv3.GetResponse
		_, err := s.members.run(ctx, func(ctx context.Context, c *clientv3.Client) (err error) {
			r, err = c.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
			return err
		})
		if err != nil {
			return nil, s.failed(ctx, "list", "", false, err)
		}
		revision = r.Header.Revision
		for _, kv := range r.Kvs {
			e := entryOf(kv)
			if name, ok := s.layout.nameOf(e.key); ok && strings.HasPrefix(name, prefix) {
				locks[name] = append(locks[name], e)
			}
		}
		if !r.More {
			break
		}
		from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
	}
	states := make([]store.State, 0, len(locks))
	for name, all := range locks {
		slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.create, b.create) })
		st := s.state(name, all)
		if st.ExpiresIn == 0 {
			left, err := s.left(ctx, all[0])
			if err != nil {
				return nil, s.failed(ctx, "list", "", false, err)
			}
			st.ExpiresIn = left
		}
		states = append(states, st)
	}
	slices.SortFunc(states, func(a, b store.State) int { return cmp.Compare(a.Name, b.Name) })
	return states, nil
}
