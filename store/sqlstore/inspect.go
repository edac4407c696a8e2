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
	_, err := s.call(ctx, s.calls.inspect, func(r row) error {
		var position int64
		var l leaseRow
		if err := l.scan(r, &position); err != nil {
			return err
		}
		switch {
		case position < 0:
			st.Broken = store.DecodeBroken(l.owner.String, l.token, string(l.meta))
			st.Holder.Broken = st.Holder.Broken || st.Held && st.Holder.Owner == l.owner.String && st.Token == l.token
		case position == 0:
			l.addTo(&st)
		default:
			st.Queue = append(st.Queue, store.Place{Holder: l.holder(), ExpiresIn: l.endsIn})
		}
		return nil
	}, []byte(name), int64(store.MaxQueue))
	if err != nil {
		return store.State{}, s.failed(ctx, "inspect", name, false, err)
	}
	return st, nil
}

// leaseRow is a row of inspect or list. limit is null for a mutex.
type leaseRow struct {
	owner               sql.NullString
	meta                hexadecimal
	token               fence.Token
	endsIn              time.Duration
	limit, weight, slot sql.NullInt64
	shared, broken      sql.NullBool
	heldFor             sql.NullInt64
}

// scan scans a row that begins with the column first.
func (l *leaseRow) scan(r row, first any) error {
	var token, endsIn sql.NullInt64
	err := r.Scan(first, &l.owner, &l.meta, &token, &endsIn, &l.limit, &l.shared, &l.weight, &l.slot, &l.heldFor, &l.broken)
	l.token, l.endsIn = fence.Token(token.Int64), duration(endsIn.Int64)
	return err
}

func (l *leaseRow) holder() store.Holder {
	h := store.DecodeHolder(l.owner.String, string(l.meta))
	h.Broken = l.broken.Bool
	return h
}

// addTo adds the lease to the state of its lock, after those before it.
func (l *leaseRow) addTo(st *store.State) {
	h := store.Holding{Holder: l.holder(), Token: l.token, ExpiresIn: l.endsIn, Weight: l.weight.Int64, Slot: l.slot.Int64}
	if l.heldFor.Valid {
		h.HeldFor = max(duration(l.heldFor.Int64), 1)
	} else {
		h.HeldFor = store.HeldFor(h.Token, h.Holder, time.Now())
	}
	if !st.Held {
		st.Held, st.Holder, st.Token, st.ExpiresIn, st.HeldFor = true, h.Holder, h.Token, h.ExpiresIn, h.HeldFor
	}
	if l.limit.Valid {
		st.Kind = store.Kind{Limit: l.limit.Int64, Shared: l.shared.Bool}
		st.Holders = append(st.Holders, h)
	}
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
		n, before := 0, after
		_, err := s.call(ctx, s.calls.list, func(r row) error {
			var name hexadecimal
			var l leaseRow
			if err := l.scan(r, &name); err != nil {
				return err
			}
			if string(name) != after {
				n++
				after = string(name)
			}
			if !l.owner.Valid { // the lock is only waited for
				return nil
			}
			if len(states) == 0 || states[len(states)-1].Name != after {
				states = append(states, store.State{Name: after})
			}
			l.addTo(&states[len(states)-1])
			return nil
		}, []byte(prefix), []byte(before), int64(page))
		if err != nil {
			return nil, s.failed(ctx, "list", "", false, err)
		}
		if n < page {
			return states, nil
		}
	}
}
