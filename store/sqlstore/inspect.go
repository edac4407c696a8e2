package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// Inspect implements store.Store.
func (s *Store) Inspect(ctx context.Context, name string) (store.State, error) {
	st := store.State{Name: name}
	if err := s.gate.Enter(store.CheckName(name)); err != nil {
		return store.State{}, err
	}
	defer s.gate.Leave()
	_, err := s.call(ctx, s.calls.inspect, func(r *sql.Rows) error {
		var position, token, endsIn int64
		var owner string
		var meta hexadecimal
		if err := r.Scan(&position, &owner, &meta, &token, &endsIn); err != nil {
			return err
		}
		switch position {
		case -1:
			st.Broken = store.DecodeBroken(owner, fence.Token(token), string(meta))
			st.Holder.Broken = st.Held && st.Holder.Owner == owner && st.Token == fence.Token(token)
			return nil
		case 0:
			st = held(name, store.DecodeHolder(owner, string(meta)), fence.Token(token), endsIn)
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

// held returns the state of a lock that is held.
func held(name string, h store.Holder, token fence.Token, endsIn int64) store.State {
	return store.State{Name: name, Held: true, Holder: h, Token: token, ExpiresIn: duration(endsIn), HeldFor: store.HeldFor(token, h, time.Now())}
}

// List implements store.Store. It reads the locks in pages.
func (s *Store) List(ctx context.Context, prefix string) ([]store.State, error) {
	if err := s.gate.Enter(nil); err != nil {
		return nil, err
	}
	defer s.gate.Leave()
	const page = 1000
	states := []store.State{}
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
			states = append(states, held(string(name), store.DecodeHolder(owner, string(meta)), fence.Token(token), endsIn))
			return nil
		}, []byte(prefix), []byte(after), int64(page))
		if err != nil {
			return nil, s.failed(ctx, "list", "", false, err)
		}
		if n < page {
			return states, nil
		}
		after = states[len(states)-1].Name
	}
}
