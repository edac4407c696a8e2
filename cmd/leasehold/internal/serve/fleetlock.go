package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/store"
)

// Fleet is a group of machines that restart in turn: so many at a time. A machine that does not
// come back keeps its slot for the TTL.
type Fleet struct {
	Slots int
	TTL   time.Duration
}

// Check returns nil if the store can keep the slots of f.
func (f Fleet) Check(s *store.Store) error {
	if f.Slots < 1 {
		return invalid("a group of machines has one slot at least")
	}
	return cmp.Or(keepsHours(s.Caps(), f.TTL), f.lease("fleetlock/x", "x").Check(s.Caps()))
}

// lease returns a lease of a slot for the machine called id. A machine is one owner, at whichever
// server it asks, so it has no more than one slot.
func (f Fleet) lease(lock, id string) store.Lease {
	h := store.Holder{Host: id, Purpose: "restart (FleetLock)", Unrenewed: true, Since: time.Now()}
	owner := fmt.Sprintf("fleetlock-%x", sha256.Sum256([]byte(id)))
	return store.Lease{Name: lock, Owner: owner, Kind: store.Semaphore(int64(f.Slots)), Weight: 1, TTL: f.TTL, Meta: h.Encode()}
}

// fleetRequest is the body of both calls.
type fleetRequest struct {
	Client struct {
		ID    string `json:"id"`
		Group string `json:"group"`
	} `json:"client_params"`
}

var fleetGroup = regexp.MustCompile(`^[a-zA-Z0-9.-]+$`)

// refuseFleet answers as FleetLock asks for: kind is for programs, and value for people.
func (s *Server) refuseFleet(w http.ResponseWriter, r *http.Request, status int, kind, value string) {
	s.Log.Warn("refused a request of FleetLock", "path", r.URL.EscapedPath(), "address", addressOf(r), "kind", kind, "reason", value)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"kind": kind, "value": value})
}

// fleetLock answers the two calls of FleetLock, by which machines that update themselves take
// turns. Each group is a semaphore called fleetlock/GROUP, and each slot a lease of a machine.
func (s *Server) fleetLock(w http.ResponseWriter, r *http.Request, call string) {
	var q fleetRequest
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		s.refuseFleet(w, r, http.StatusMethodNotAllowed, "wrong_method", "this path is for POST")
		return
	}
	if r.Header.Get("Fleet-Lock-Protocol") != "true" {
		s.refuseFleet(w, r, http.StatusBadRequest, "missing_header", "the header fleet-lock-protocol: true is missing")
		return
	}
	var raw json.RawMessage
	if err := s.read(w, r, &raw, maxBody); err != nil {
		p := problemOf(err)
		s.refuseFleet(w, r, p.Status, "invalid_body", p.Detail)
		return
	}
	if err := json.Unmarshal(raw, &q); err != nil || q.Client.ID == "" || len(q.Client.ID) > 500 || len(q.Client.Group) > 200 || !fleetGroup.MatchString(q.Client.Group) {
		s.refuseFleet(w, r, http.StatusBadRequest, "invalid_client_params", `the body is {"client_params": {"id": ID, "group": GROUP}}, with a group of letters, digits, dots and dashes`)
		return
	}
	fleet, ok := s.Fleets[q.Client.Group]
	if !ok {
		s.refuseFleet(w, r, http.StatusNotFound, "unknown_group", "this server has no group "+q.Client.Group+": start it with --fleetlock "+q.Client.Group+"=SLOTS")
		return
	}
	lock := "fleetlock/" + q.Client.Group
	if !rights.Of(r.Context()).May(rights.Lock, lock) {
		s.audit(r, "refused a right", lock)
		s.refuseFleet(w, r, http.StatusForbidden, "forbidden", "this client has no right to lock "+lock)
		return
	}
	var err error
	if call == "pre-reboot" {
		err = s.takeSlot(r.Context(), fleet.lease(lock, q.Client.ID))
	} else {
		err = s.leaveSlot(r.Context(), fleet.lease(lock, q.Client.ID))
	}
	var busy *store.BusyError
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
	case errors.As(err, &busy):
		s.refuseFleet(w, r, http.StatusConflict, "all_slots_taken", fmt.Sprintf("all %d slots of group %s are taken, one by %s for at most %v", fleet.Slots, q.Client.Group, busy.Holder, busy.ExpiresIn.Round(time.Second)))
	default:
		p := problemOf(err)
		s.refuseFleet(w, r, p.Status, "store_"+p.Kind(), p.Detail)
	}
}

// takeSlot renews the lease of a machine, or acquires it. A machine that has a slot keeps it
// also if the number of slots was changed.
func (s *Server) takeSlot(ctx context.Context, l store.Lease) error {
	held := l
	if _, err := s.again(ctx, &held); !errors.Is(err, store.ErrNotHeld) {
		return err
	}
	l.Attempt = store.NewOwner() // the machine may ask again, here or elsewhere
	_, err := s.Store.Acquire(ctx, store.AcquireRequest{Lease: l})
	return err
}

// leaveSlot releases the lease of a machine, if it has one.
func (s *Server) leaveSlot(ctx context.Context, l store.Lease) error {
	_, err := s.heldAs(ctx, &l)
	if err == nil {
		err = s.Store.Release(ctx, store.ReleaseRequest{Lease: l, Renewed: true})
	}
	if errors.Is(err, store.ErrNotHeld) {
		return nil
	}
	return err
}
