package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/store"
)

// terraformTTL is how long a lock of Terraform lasts after it was acquired, or a state was
// written under it, unless the address says otherwise.
const terraformTTL = 2 * time.Hour

// lockInfo is what Terraform and OpenTofu write of a lock.
type lockInfo struct {
	ID        string    `json:"ID"`
	Operation string    `json:"Operation"`
	Info      string    `json:"Info"`
	Who       string    `json:"Who"`
	Version   string    `json:"Version"`
	Created   time.Time `json:"Created"`
	Path      string    `json:"Path"`
}

// terraform answers the http backend of Terraform and OpenTofu. The lock of a state has its name.
// Its owner is the ID of Terraform's lock, so a call that is repeated is about the same lease.
func (s *Server) terraform(w http.ResponseWriter, r *http.Request, path string) {
	name, _, err := lockPath(path, false)
	if err == nil {
		err = s.doTerraform(w, r, name)
	}
	if err == nil {
		return
	}
	if problemOf(err).Kind() != httpapi.NotFound { // Terraform shows the status alone
		s.Log.Warn("refused a request of Terraform", "method", r.Method, "lock", store.Excerpt(name), "error", err)
	}
	s.failWith(w, r, err)
}

// doTerraform answers a request about the state called name, or returns why not.
func (s *Server) doTerraform(w http.ResponseWriter, r *http.Request, name string) error {
	call, ok := map[string]func(http.ResponseWriter, *http.Request, string, time.Duration) error{
		"LOCK": s.lockState, "UNLOCK": s.unlockState,
		http.MethodGet: s.getState, http.MethodPost: s.writeState, http.MethodDelete: s.writeState,
	}[r.Method]
	if !ok {
		return wrongMethod(w, "GET, POST, DELETE, LOCK, UNLOCK")
	}
	if err := s.check(r, rights.Lock, name); err != nil { // also to read: a state has secrets
		return err
	}
	query, ttl := r.URL.Query(), terraformTTL
	if text := query.Get("ttl"); text != "" {
		var err error
		if ttl, err = time.ParseDuration(text); err != nil {
			return invalid("ttl=" + store.Excerpt(text) + " in the address is no time such as 2h")
		}
	}
	if len(query["ID"]) > 1 || len(query["ttl"]) > 1 {
		return invalid("the address has two values for ID or ttl")
	}
	if err := keepsHours(s.Store.Caps(), ttl); err != nil {
		return err
	}
	return call(w, r, name, ttl)
}

// stateLease returns the lease of Terraform's lock with that ID.
func stateLease(r *http.Request, name string, info lockInfo, ttl time.Duration) (store.Lease, error) {
	asked := httpapi.In(ttl)
	purpose := "terraform " + info.Operation
	if info.Info != "" {
		purpose += ": " + info.Info
	}
	l, err := leaseOf(r, name, httpapi.Request{Owner: info.ID, TTL: &asked, Host: info.Who, Purpose: purpose, Attempt: store.NewOwner()})
	if err != nil {
		return l, err
	}
	h := store.DecodeHolder(l.Owner, l.Meta)
	h.Since = info.Created
	l.Meta = h.Encode()
	return l, store.CheckOwner(info.ID)
}

// infoOf describes a holder as Terraform does.
func infoOf(name string, h store.Holder) lockInfo {
	i := lockInfo{ID: h.Owner, Operation: h.Purpose, Who: h.Process(100), Created: h.Since, Path: name}
	if h.Foreign {
		i.Info = "another program holds the lock"
	}
	return i
}

// lockedBy answers that the lock is held.
func lockedBy(w http.ResponseWriter, status int, info lockInfo) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(info) // fails if the client is gone
	return nil
}

// readInfo reads the body of LOCK and UNLOCK. An empty one leaves info empty.
func (s *Server) readInfo(w http.ResponseWriter, r *http.Request) (info lockInfo, err error) {
	var raw json.RawMessage
	err = s.read(w, r, &raw, maxBody)
	if err == nil && len(raw) > 0 && json.Unmarshal(raw, &info) != nil {
		err = invalid("the body is not the description of a lock")
	}
	return info, err
}

// lockState answers LOCK.
func (s *Server) lockState(w http.ResponseWriter, r *http.Request, name string, ttl time.Duration) error {
	info, err := s.readInfo(w, r)
	if err != nil {
		return err
	}
	l, err := stateLease(r, name, info, ttl)
	if err != nil {
		return err
	}
	call := stateCall(name, info.ID)
	try, ok := s.tries.begin(r.Context(), call, 0, s.clock.Now())
	if !ok { // it was unlocked already: this request was stuck on its way
		return errTakenBack
	}
	defer try.done()
	defer s.states.lock(name)()
	_, err = s.Store.Acquire(r.Context(), store.AcquireRequest{Lease: l})
	var busy *store.BusyError
	switch {
	case errors.As(err, &busy) && busy.Holder.Owner == info.ID && !busy.Holder.Waiting:
		return nil // the same lock under another description
	case errors.As(err, &busy):
		return lockedBy(w, http.StatusLocked, infoOf(name, busy.Holder))
	case err == nil && s.tries.isTakenBack(call, s.clock.Now()):
		return s.takeBack(r.Context(), l)
	}
	return err
}

// stateCall names the lock of an ID among the tries of calls.
func stateCall(name, id string) callID {
	if id == "" {
		return 0
	}
	return callOf("terraform\x00"+id, name)
}

// unlockState answers UNLOCK. Without an ID, or with nothing but an ID, it is a force-unlock, which
// takes the right to break.
func (s *Server) unlockState(w http.ResponseWriter, r *http.Request, name string, ttl time.Duration) error {
	info, err := s.readInfo(w, r)
	if err != nil {
		return err
	}
	defer s.states.lock(name)()
	now := s.clock.Now()
	call := stateCall(name, info.ID)
	st, err := s.Store.Inspect(r.Context(), name)
	if err != nil {
		return err
	}
	all := st.Holdings()
	if len(all) == 0 {
		if s.tries.hasReleased(call, now) || info.ID == "" {
			return nil
		}
		return store.ErrNotHeld
	}
	h := all[0]
	if info.ID != "" && info.ID != h.Holder.Owner {
		s.Log.Warn("refused to unlock a state", "lock", store.Excerpt(name), "id", store.Excerpt(info.ID), "holder", store.Excerpt(h.Holder.Owner))
		return lockedBy(w, http.StatusConflict, infoOf(name, h.Holder))
	}
	if info.Who == "" && info.Operation == "" {
		if err := s.check(r, rights.Break, name); err != nil {
			return err
		}
		_, err = s.Break(r, leasehold.BreakRequest{Name: name, Owner: h.Holder.Owner, Token: h.Token, Reason: "force-unlock", Now: true})
	} else {
		var l store.Lease
		if l, err = stateLease(r, name, info, ttl); err == nil {
			l.Attempt = "" // whichever was granted
			if _, err = s.heldAs(r.Context(), &l); err == nil {
				err = s.Store.Release(r.Context(), store.ReleaseRequest{Lease: l, Renewed: true})
			}
		}
	}
	if err != nil {
		return err
	}
	s.tries.takeBack(stateCall(name, h.Holder.Owner), now) // a LOCK may be stuck on its way
	s.tries.release(call, now)
	return nil
}

var errNoStates = refuse(httpapi.Unsupported, "this server keeps locks and no states: start it with --terraform-state DIR, or use it as lock_address and unlock_address beside another address")

// getState answers GET.
func (s *Server) getState(w http.ResponseWriter, r *http.Request, name string, _ time.Duration) error {
	if s.TerraformState == "" {
		return errNoStates
	}
	f, err := os.Open(s.states.path(name))
	if errors.Is(err, os.ErrNotExist) {
		// If the folder is missing too, perhaps with its disk, nobody knows whether there is a state.
		if _, err := os.Stat(s.TerraformState); err != nil {
			return err
		}
		return refuse(httpapi.NotFound, "there is no such state yet")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(statePatience))
	// With its length, a state that cannot be read to its end is not taken for a shorter one.
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if _, err := io.Copy(w, f); err != nil {
		s.Log.Warn("a state was not sent whole", "lock", store.Excerpt(name), "error", err)
	}
	return nil
}

// statePatience is how long a state may take on its way.
const statePatience = 5 * time.Minute

// writeState answers POST and DELETE. A write whose ID does not hold the lock any more is refused.
// A write without an ID needs the lock for itself.
func (s *Server) writeState(w http.ResponseWriter, r *http.Request, name string, ttl time.Duration) error {
	if s.TerraformState == "" {
		return errNoStates
	}
	file := ""
	if r.Method == http.MethodPost {
		var err error
		if file, err = s.receiveState(w, r); err != nil {
			return err
		}
		defer os.Remove(file) // fails once it is the state
	}
	defer s.states.lock(name)()
	id := r.URL.Query().Get("ID")
	var err error
	if id == "" {
		var free func()
		if free, err = s.lockForWrite(r, name); err == nil {
			defer free()
		}
	} else {
		l := store.Lease{Name: name, Owner: id, TTL: ttl}
		if err = store.CheckOwner(id); err == nil {
			_, err = s.again(r.Context(), &l)
		}
	}
	var busy *store.BusyError
	switch {
	case errors.As(err, &busy):
		s.audit(r, "refused to write a state", name, slog.String("holder", store.Excerpt(busy.Holder.Owner)))
		return lockedBy(w, http.StatusLocked, infoOf(name, busy.Holder))
	case errors.Is(err, store.ErrNotHeld):
		s.audit(r, "refused to write a state", name, slog.String("id", store.Excerpt(id)))
		return refuse(httpapi.NotHeld, "the lock with this ID is over: it was unlocked, or nothing was written under it for its ttl")
	case err != nil:
		return err
	}
	if file == "" {
		err = s.states.remove(name)
	} else {
		err = s.states.put(name, file, id)
	}
	if errors.Is(err, errOvertaken) {
		return refuse(httpapi.NotHeld, err.Error())
	}
	return err
}

// receiveState writes the body to a file.
func (s *Server) receiveState(w http.ResponseWriter, r *http.Request) (file string, err error) {
	if r.ContentLength > mostState {
		return "", tooLarge(mostState)
	}
	c := http.NewResponseController(w)
	c.SetReadDeadline(time.Now().Add(statePatience))
	c.SetWriteDeadline(time.Now().Add(2 * statePatience))
	file, err = s.states.receive(http.MaxBytesReader(w, r.Body, mostState), r.Header.Get("Content-MD5"))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		err = tooLarge(mostState)
	case err == nil:
		c.SetReadDeadline(time.Time{})
	}
	if err != nil {
		w.Header().Set("Connection", "close")
	}
	return file, err
}

// lockForWrite takes the lock for one write without an ID.
func (s *Server) lockForWrite(r *http.Request, name string) (free func(), err error) {
	l, err := stateLease(r, name, lockInfo{ID: store.NewOwner(), Operation: "write without a lock", Who: addressOf(r), Created: time.Now()}, time.Minute)
	if err != nil {
		return nil, err
	}
	if _, err := s.Store.Acquire(r.Context(), store.AcquireRequest{Lease: l}); err != nil {
		return nil, err
	}
	return func() {
		ctx, stop := clock.Bound(context.WithoutCancel(r.Context()), s.Patience)
		defer stop()
		if err := s.Store.Release(ctx, store.ReleaseRequest{Lease: l}); err != nil {
			s.Log.Warn("a lock stays taken for a minute", "lock", store.Excerpt(name), "error", err)
		}
	}, nil
}
