package filestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/shown"
	"github.com/leasehold-dev/leasehold/store"
)

// Inspect implements store.Store. It does not wait for writers.
func (s *Store) Inspect(ctx context.Context, name string) (store.State, error) {
	if err := s.gate.Enter(store.CheckName(name)); err != nil {
		return store.State{}, err
	}
	defer s.gate.Leave()
	var st store.State
	err := s.read(ctx, func(t *step) error {
		r, err := t.read(name)
		st = shown.State(name, r.Record, t.now)
		st.Queue = shown.Queue(r.Record, t.now)
		st.Broken = shown.Broken(r.Record, t.now)
		return err
	})
	if err != nil {
		return store.State{}, s.failed(ctx, "inspect", name, false, err)
	}
	return st, nil
}

// List implements store.Store. The result is a consistent snapshot.
func (s *Store) List(ctx context.Context, prefix string) ([]store.State, error) {
	if err := s.gate.Enter(nil); err != nil {
		return nil, err
	}
	defer s.gate.Leave()
	var held []store.State
	var unread error
	err := s.read(ctx, func(t *step) (err error) {
		held, unread, err = t.list(prefix)
		return err
	})
	if err != nil {
		return nil, s.failed(ctx, "list", "", false, err)
	}
	return held, unread
}

// list returns the locks that are held. If records cannot be read, unread says which, and
// matches store.ErrIncomplete.
func (t *step) list(prefix string) (held []store.State, unread, err error) {
	// No name with this prefix sorts after the prefix followed by more 0xff bytes
	// than a name can have.
	last := prefix + strings.Repeat("\xff", max(store.MaxName-len(prefix), 0)+1)
	if _, err := t.read("leasehold"); err != nil { // only for step.check
		return nil, nil, err
	}
	held = []store.State{}
	err = t.tx.query(qList, func(v []driver.Value) error {
		bytes, _ := v[0].([]byte)
		text, _ := v[1].([]byte)
		name := string(bytes)
		r, err := decode(name, text)
		if err != nil {
			unread = errors.Join(unread, err)
			return nil
		}
		if st := shown.State(name, r.Record, t.now); st.Held {
			held = append(held, st)
		}
		return nil
	}, []byte(prefix), []byte(last), int64(t.now))
	if unread != nil {
		unread = fmt.Errorf("%w: %w", store.ErrIncomplete, unread)
	}
	return held, unread, err
}
