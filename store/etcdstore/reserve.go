package etcdstore

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/store"
)

// ReserveTokens implements store.Waiter. It gives the place a new revision, which has
// room for 128 tokens.
func (s *Store) ReserveTokens(ctx context.Context, r store.ReserveRequest) (store.Reserved, error) {
	if err := s.gate.Enter(r.Check(s.Caps())); err != nil {
		return store.Reserved{}, err
	}
	defer s.gate.Leave()
	if err := ctx.Err(); err != nil {
		return store.Reserved{}, s.failed(ctx, "reserve tokens for", r.Name, false, err)
	}
	several := !r.Kind.IsMutex()
	key, create := "", int64(0)
	if h := s.holds.get(r.Name, r.Owner); h != nil {
		key, create = h.key, h.create
	} else {
		has, err := s.find(ctx, r.Lease)
		if err != nil {
			return store.Reserved{}, s.notReserved(ctx, r, err)
		}
		key, create = has.key, has.create
	}
	prefix := s.layout.lock(r.Name)
	draw := txn{
		ifs:  []condition{created(key, create)},
		then: []operation{touch(key), get(key), count(prefix)},
	}
	if several {
		draw.then = append(draw.then[:2], s.layout.readAll(r.Name)...)
	}
	t, _, err := s.commit(ctx, draw)
	switch {
	case err != nil:
		return store.Reserved{}, s.notReserved(ctx, r, err)
	case !t.Succeeded || entriesOf(t.Responses[1].GetResponseRange().Kvs)[0].Broken:
		return store.Reserved{}, s.notReserved(ctx, r, store.ErrNotHeld)
	}
	waiting := t.Responses[2].GetResponseRange().Count > 1
	if several {
		v := s.view(r.Name, t)
		waiting = v.holders() < len(v.places)
	}
	return store.Reserved{
		Token:   tokenAt(s.floor, t.Header.Revision),
		Count:   min(r.Count, mostSpare+1),
		Waiting: waiting,
	}, nil
}

func (s *Store) notReserved(ctx context.Context, r store.ReserveRequest, err error) error {
	if err == store.ErrNotHeld {
		return fmt.Errorf("reserve tokens for %q in etcd at %s: %w", r.Name, s.members, err)
	}
	return s.refused(ctx, "reserve tokens for", r.Name, true, err)
}
