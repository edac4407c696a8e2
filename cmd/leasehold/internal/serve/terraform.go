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
	name, _, p := lockPath(path, false)
	if p != nil {
		s.fail(w, r, p)
		return
	}
	call, ok := map[string]func(*Server, http.ResponseWriter, *http.Request, string, time.Duration){
		"LOCK": (*Server).lockState, "UNLOCK": (*Server).unlockState,
		http.MethodGet: (*Server).getState, http.MethodPost: (*Server).writeState, http.MethodDelete: (*Server).writeState,
	}[r.Method]
	if !ok {
		s.wrongMethod(w, r, "GET, POST, DELETE, LOCK, UNLOCK")
		return
	}
	if !s.may(w, r, rights.Lock, name) { // also to read: a state has secrets
		return
	}
	query, ttl := r.URL.Query(), terraformTTL
	if text := query.Get("ttl"); text != "" {
		var err error
		if ttl, err = time.ParseDuration(text); err != nil {
			s.refuseState(w, r, name, invalid("ttl="+store.Excerpt(text)+" in the address is no time such as 2h"))
			return
		}
	}
	if len(query["ID"]) > 1 || len(query["ttl"]) > 1 {
		s.refuseState(w, r, name, invalid("the address has two values for ID or ttl"))
		return
	}
	if err := keepsHours(s.Store.Caps(), ttl); err != nil {
		s.refuseState(w, r, name, err)
		return
	}
	call(s, w, r, name, ttl)
}

// refuseState answers with the problem that err is, and logs it, since Terraform shows the status
// alone.
func (s *Server) refuseState(w http.ResponseWriter, r *http.Request, name string, err error) {
	s.Log.Warn("refused a request of Terraform", "method", r.Method, "lock", store.Excerpt(name), "error", err)
	var e *httpapi.Error
	if errors.As(err, &e) {
		s.fail(w, r, &e.Problem)
		return
	}
	s.failWith(w, r, err)
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
func lockedBy(w http.ResponseWriter, status int, info lockInfo) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(info)
}

// readInfo reads the body of LOCK and UNLOCK. An empty one leaves info empty.
func (s *Server) readInfo(w http.ResponseWriter, r *http.Request) (info lockInfo, ok bool) {
	var raw json.RawMessage
	p := s.read(w, r, &raw, maxBody)
	if p == nil && len(raw) > 0 && json.Unmarshal(raw, &info) != nil {
		p = httpapi.New(httpapi.Invalid, "the body is not the description of a lock")
	}
	if p != nil {
		s.fail(w, r, p)
	}
	return info, p == nil
}

// lockState answers LOCK.
func (s *Server) lockState(w http.ResponseWriter, r *http.Request, name string, ttl time.Duration) {
	info, ok := s.readInfo(w, r)
	if !ok {
		return
	}
	l, err := stateLease(r, name, info, ttl)
	if err != nil {
		s.refuseState(w, r, name, err)
		return
	}
	call := stateCall(name, info.ID)
	try, ok := s.tries.begin(r.Context(), call, 0, s.clock.Now())
	if !ok { // it was unlocked already: this request was stuck on its way
		s.refuseState(w, r, name, errTakenBack)
		return
	}
	defer try.done()
	defer s.states.lock(name)()
	_, err = s.Store.Acquire(r.Context(), store.AcquireRequest{Lease: l})
	var busy *store.BusyError
	switch {
	case errors.As(err, &busy) && busy.Holder.Owner == info.ID && !busy.Holder.Waiting:
		w.WriteHeader(http.StatusOK) // the same lock under another description
	case errors.As(err, &busy):
		lockedBy(w, http.StatusLocked, infoOf(name, busy.Holder))
	case err != nil:
		s.refuseState(w, r, name, err)
	case s.tries.isTakenBack(call, s.clock.Now()):
		s.refuseState(w, r, name, s.takeBack(r.Context(), l))
	default:
		w.WriteHeader(http.StatusOK)
	}
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
func (s *Server) unlockState(w http.ResponseWriter, r *http.Request, name string, ttl time.Duration) {
	info, ok := s.readInfo(w, r)
	if !ok {
		return
	}
	defer s.states.lock(name)()
	now := s.clock.Now()
	call := stateCall(name, info.ID)
	st, err := s.Store.Inspect(r.Context(), name)
	if err != nil {
		s.refuseState(w, r, name, err)
		return
	}
	all := st.Holdings()
	if len(all) == 0 {
		if s.tries.hasReleased(call, now) || info.ID == "" {
			w.WriteHeader(http.StatusOK)
			return
		}
		s.refuseState(w, r, name, store.ErrNotHeld)
		return
	}
	h := all[0]
	if info.ID != "" && info.ID != h.Holder.Owner {
		s.Log.Warn("refused to unlock a state", "lock", store.Excerpt(name), "id", store.Excerpt(info.ID), "holder", store.Excerpt(h.Holder.Owner))
		lockedBy(w, http.StatusConflict, infoOf(name, h.Holder))
		return
	}
	if info.Who == "" && info.Operation == "" {
		if !s.may(w, r, rights.Break, name) {
			return
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
		s.refuseState(w, r, name, err)
		return
	}
	s.tries.takeBack(stateCall(name, h.Holder.Owner), now) // a LOCK may be stuck on its way
	s.tries.release(call, now)
	w.WriteHeader(http.StatusOK)
}

var errNoStates = &httpapi.Error{Problem: *httpapi.New(httpapi.Unsupported, "this server keeps locks and no states: start it with --terraform-state DIR, or use it as lock_address and unlock_address beside another address")}

// getState answers GET.
func (s *Server) getState(w http.ResponseWriter, r *http.Request, name string, _ time.Duration) {
	if s.TerraformState == "" {
		s.refuseState(w, r, name, errNoStates)
		return
	}
	f, err := os.Open(s.states.path(name))
	if errors.Is(err, os.ErrNotExist) {
		// If the folder is missing too, perhaps with its disk, nobody knows whether there is a state.
		if _, err := os.Stat(s.TerraformState); err != nil {
			s.refuseState(w, r, name, err)
			return
		}
		s.fail(w, r, httpapi.New(httpapi.NotFound, "there is no such state yet"))
		return
	}
	if err != nil {
		s.refuseState(w, r, name, err)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		s.refuseState(w, r, name, err)
		return
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(statePatience))
	// With its length, a state that cannot be read to its end is not taken for a shorter one.
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if _, err := io.Copy(w, f); err != nil {
		s.Log.Warn("a state was not sent whole", "lock", store.Excerpt(name), "error", err)
	}
}

// statePatience is how long a state may take on its way.
const statePatience = 5 * time.Minute

// writeState answers POST and DELETE. A write whose ID does not hold the lock any more is refused.
// A write without an ID needs the lock for itself.
func (s *Server) writeState(w http.ResponseWriter, r *http.Request, name string, ttl time.Duration) {
	if s.TerraformState == "" {
		s.refuseState(w, r, name, errNoStates)
		return
	}
	file := ""
	if r.Method == http.MethodPost {
		var err error
		if file, err = s.receiveState(w, r); err != nil {
			s.refuseState(w, r, name, err)
			return
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
		lockedBy(w, http.StatusLocked, infoOf(name, busy.Holder))
		return
	case errors.Is(err, store.ErrNotHeld):
		s.audit(r, "refused to write a state", name, slog.String("id", store.Excerpt(id)))
		s.fail(w, r, httpapi.New(httpapi.NotHeld, "the lock with this ID is over: it was unlocked, or nothing was written under it for its ttl"))
		return
	case err != nil:
		s.refuseState(w, r, name, err)
		return
	}
	if file == "" {
		err = s.states.remove(name)
	} else {
		err = s.states.put(name, file, id)
	}
	if errors.Is(err, errOvertaken) {
		err = &httpapi.Error{Problem: *httpapi.New(httpapi.NotHeld, err.Error())}
	}
	if err != nil {
		s.refuseState(w, r, name, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// receiveState writes the body to a file.
func (s *Server) receiveState(w http.ResponseWriter, r *http.Request) (file string, err error) {
	if r.ContentLength > mostState {
		return "", &httpapi.Error{Problem: *tooLarge(mostState)}
	}
	c := http.NewResponseController(w)
	c.SetReadDeadline(time.Now().Add(statePatience))
	c.SetWriteDeadline(time.Now().Add(2 * statePatience))
	file, err = s.states.receive(http.MaxBytesReader(w, r.Body, mostState), r.Header.Get("Content-MD5"))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		err = &httpapi.Error{Problem: *tooLarge(mostState)}
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
