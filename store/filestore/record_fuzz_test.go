package filestore

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// FuzzRecord replaces a lock's record by any bytes. No step then panics or grants the lock
// beside a holder. Bytes that are no record give an error that names the lock.
func FuzzRecord(f *testing.F) {
	const lease = `{"owner":"ann","weight":1,"count":1,"token":7,"expiry":9000000000000000000}`
	for _, text := range []string{
		`{"spec":{"limit":1},"holds":[` + lease + `],"token":7}`,
		`{"spec":{"limit":1},"holds":[{"owner":"ann","weight":1,"count":1,"token":7,"expiry":1}],"token":7}`,
		`{"spec":{"limit":1},"tombs":[{"owner":"me","expiry":9000000000000000000}],"token":7}`,
		`{"spec":{"limit":1},"line":[{"owner":"bob","weight":1,"expiry":9000000000000000000}],"token":7}`,
		`{"spec":{"limit":3},"holds":[` + lease + `],"token":7}`,
		`{"spec":{"limit":1099511627776,"shared":true},"holds":[` + lease + `,` + lease + `],"token":7}`,
		`{"spec":{"limit":1},"line":[{"owner":"bob","weight":1,"expiry":9000000000000000000,"barge":true},{"owner":"me","weight":1,"expiry":9000000000000000000}],"token":7}`,
		`{"spec":{"limit":3},"holds":[` + lease + `],"line":[{"owner":"bob","weight":2,"expiry":9000000000000000000}],"token":9}`,
		``, `null`, `{}`, `[]`, `"x"`, `{`, "\x00\xff", `{"spec":{"limit":1},"token":7}`,
		`{"spec":{"limit":1},"holds":[{}],"token":7}`,
		`{"spec":{"limit":1},"holds":[{"owner":"ann","count":1,"token":7,"expiry":9000000000000000000}],"token":7}`,
		`{"spec":{"limit":1},"holds":[{"owner":"ann","weight":-9223372036854775808,"count":1,"token":7,"expiry":9000000000000000000}],"token":7}`,
		`{"spec":{"limit":9},"holds":[{"owner":"me","weight":1,"count":-5,"token":7,"expiry":9000000000000000000}],"token":7}`,
		`{"spec":{"limit":-1},"line":[{"owner":"bob","weight":-1,"expiry":9000000000000000000}],"token":7}`,
		`{"spec":{"limit":1},"holds":[{"owner":"ann","weight":1,"count":1,"token":8,"expiry":9000000000000000000}],"token":7}`,
		`{"spec":{"limit":1},"tombs":[{"owner":"bob","expiry":9223372036854775807}],"token":18446744073709551615}`,
		`{"spec":{"limit":1},"holds":[` + lease + `],"token":7} trailing`,
	} {
		f.Add([]byte(text))
	}
	m := newFakeMachine()
	s, err := openFile(context.Background(), filepath.Join(f.TempDir(), "locks.db"), nil, sqliteOn(m.machine()))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	ctx := context.Background()

	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := decode("stock", text); err != nil {
			unreadable(t, text, err)
			return
		}
		putRow(t, s, text)
		st, err := s.Inspect(ctx, "stock")
		if err != nil || !json.Valid(text) {
			t.Fatalf("decode accepts %q as a record, and inspect returns %+v, %v", text, st, err)
		}
		for name, op := range stepsOf(s) {
			putRow(t, s, text)
			err := op()
			after, lookErr := s.Inspect(ctx, "stock")
			switch {
			case lookErr != nil:
				t.Errorf("%s turns %q into a row that cannot be read: %v", name, text, lookErr)
			case err == nil && name == "acquire" && st.Held && st.Holder.Owner != "me":
				t.Errorf("acquire succeeded beside %+v in %q, and left %+v", st, text, after)
			case err == nil && name == "acquire" && after.Holder.Owner != "me":
				t.Errorf("acquire of %q succeeded without holding the lock: %+v", text, after)
			case err != nil && st.Held && st.Holder != after.Holder:
				t.Errorf("%s of %q failed (%v) and left %+v", name, text, err, after)
			case err != nil && !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrNotHeld) && !errors.Is(err, store.ErrKindMismatch):
				t.Errorf("%s of %q: %v, want success or one of the errors of a lock in use", name, text, err)
			}
		}
	})
}

func putRow(t *testing.T, s *Store, text []byte) {
	t.Helper()
	if _, err := s.db.ExecContext(context.Background(), s.d.sql.put, []byte("stock"), string(text), int64(math.MaxInt64)); err != nil {
		t.Fatal(err)
	}
}

// stepsOf returns the calls that an owner "me" can make for the lock.
func stepsOf(s *Store) map[string]func() error {
	ctx := context.Background()
	r := store.Lease{Name: "stock", Owner: "me", TTL: 30e9}
	return map[string]func() error{
		"acquire": func() error { _, err := s.Acquire(ctx, store.AcquireRequest{Lease: r}); return err },
		"renew":   func() error { return s.Renew(ctx, []store.Lease{r})[0] },
		"release": func() error { return s.Release(ctx, store.ReleaseRequest{Lease: r}) },
	}
}

// Every call that reads an invalid row returns an error and leaves the row
// unchanged.
func TestUnreadableRow(t *testing.T) {
	s := newFakeMachine().open(t, filepath.Join(t.TempDir(), "locks.db"))
	text := []byte("{")
	putRow(t, s, text)
	for _, op := range stepsOf(s) {
		unreadable(t, text, op())
	}
	_, err := s.Inspect(t.Context(), "stock")
	unreadable(t, text, err)
	_, err = s.List(t.Context(), "st")
	unreadable(t, text, err)
	said(t, err, "delete its row")
	mustAcquire(t, s, request("other"))
}

// A row that no store can have written is refused, and not taken for a free lock.
func TestInvalidRecords(t *testing.T) {
	const lease = `{"owner":"ann","weight":1,"count":1,"token":7,"expiry":9000000000000000000}`
	if _, err := decode("stock", []byte(`{"spec":{"limit":1},"holds":[`+lease+`],"token":7}`)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "null", "{}", `{"spec":{"limit":1},"token":7}`, "\x00",
		`{"spec":{"limit":1},"holds":[` + lease + `],"token":7} trailing`,
		`{"spec":{"limit":1},"holds":[` + lease + `],"token":6}`,
		`{"spec":{"limit":1},"holds":[` + lease + `,` + lease + `],"token":7}`,
		`{"spec":{"limit":0},"holds":[` + lease + `],"token":7}`,
		`{"spec":{"limit":1},"holds":[` + strings.Replace(lease, `"ann"`, `""`, 1) + `],"token":7}`,
		`{"spec":{"limit":1},"holds":[` + strings.Replace(lease, `"weight":1`, `"weight":0`, 1) + `],"token":7}`,
		`{"spec":{"limit":1},"holds":[` + strings.Replace(lease, `"weight":1`, `"weight":-9223372036854775808`, 1) + `],"token":7}`,
		`{"spec":{"limit":1},"holds":[` + strings.Replace(lease, `"count":1`, `"count":-1`, 1) + `],"token":7}`,
		`{"spec":{"limit":1},"holds":[` + strings.Replace(lease, `"token":7`, `"token":0`, 1) + `],"token":7}`,
		`{"spec":{"limit":1},"line":[{"owner":"bob","weight":2,"expiry":9}],"token":7}`,
		`{"spec":{"limit":1},"holds":[` + lease + `],"token":9223372036854775808}`,
		`{"spec":{"limit":1},"tombs":[{"owner":"","expiry":9}],"token":7}`,
		`{"spec":{"limit":1},"tombs":[{"owner":"bob","expiry":9}],"token":18446744073709551615}`,
	} {
		if r, err := decode("stock", []byte(text)); err == nil {
			t.Errorf("%s is read as %+v, want an error", text, r)
		} else {
			unreadable(t, []byte(text), err)
		}
	}
}

func unreadable(t *testing.T, text []byte, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), `lock "stock" cannot be read`) {
		t.Errorf("%q: %v, want it to say that the record cannot be read", text, err)
	}
}

// One record that cannot be read keeps nobody from seeing the other locks.
func TestListBesideAnUnreadableRecord(t *testing.T) {
	s, err := OpenFile(t.Context(), filepath.Join(t.TempDir(), "locks.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{"a", "stock", "z"} {
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: name, Owner: "me", TTL: time.Minute}}); err != nil {
			t.Fatal(err)
		}
	}
	putRow(t, s, []byte("{"))
	states, err := s.List(t.Context(), "")
	if !errors.Is(err, store.ErrIncomplete) || !strings.Contains(err.Error(), "stock") || len(states) != 2 || states[0].Name != "a" || states[1].Name != "z" {
		t.Errorf("List: %+v, %v, want a and z, and an error that names the other lock", states, err)
	}
}
