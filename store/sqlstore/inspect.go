package sqlstore

import (
	"context"
	"database/sql"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// Inspect implements store.Store.
func (s *Store) Inspect(ctx context.Context, name string) (store.State, error) {
	st := store.State{Name: name}
	if err := store.CheckName(name); err != nil {
		return store.State{}, err
	}
	if err := s.gate.enter(); err != nil {
		return store.State{}, err
	}
	defer s.gate.leave()
	_, err := s.call(ctx, s.calls.inspect, func(r *sql.Rows) error {
		var position, token, endsIn int64
		var owner string
		var meta hexadecimal
		if err := r.Scan(&position, &owner, &meta, &token, &endsIn); err != nil {
			return err
		}
		if position == 0 {
			st = store.State{Name: name, Held: true, Holder: store.DecodeHolder(owner, string(meta)), Token: fence.Token(token), ExpiresIn: duration(endsIn)}
			return nil
		}
		st.Queue = append(st.Queue, store.Place{Holder: store.DecodeHolder(owner, string(meta)), ExpiresIn: duration(endsIn)})
		return nil
	}, []byte(name), int64(store.MaxQueue))
	if err != nil {
		return store.State{}, s.failed(ctx, "inspect", name, false, err)
	}
	return st, nil
}

// List implements store.Store. It reads the locks in pages.
func (s *Store) List(ctx context.Context, prefix string) ([]store.State, error) {
	if err := s.gate.enter(); err != nil {
		return nil, err
	}
	defer s.gate.leave()
	const page = 1000
	held := []store.State{}
	for after := ""; ; {
		n := 0
		_, err := s.call(ctx, s.calls.list, func(r *sql.Rows) error {
			var token, endsIn int64
			var owner string
			var name, meta hexadecimal
			if err := r.Scan(&name, &owner, &meta, &token, &endsIn); err != nil {
				return err
			}
			n++
			held = append(held, store.State{Name: string(name), Held: true, Holder: store.DecodeHolder(owner, string(meta)), Token: fence.Token(token), ExpiresIn: duration(endsIn)})
			return nil
		}, []byte(prefix), []byte(after), int64(page))
		if err != nil {
			return nil, s.failed(ctx, "list", "", false, err)
		}
		if n < page {
			return held, nil
		}
		after = held[len(held)-1].Name
	}
}
