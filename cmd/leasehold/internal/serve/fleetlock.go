package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
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

// lease returns a lease of a slot for the machine called id.
func (f Fleet) lease(lock, id string) store.Lease {
	h := store.Holder{Host: id, Purpose: fleetPurpose, Unrenewed: true, Since: time.Now()}
	return store.Lease{Name: lock, Owner: store.NewOwner(), Kind: store.Semaphore(int64(f.Slots)), Weight: 1, TTL: f.TTL, Meta: h.Encode()}
}

// fleetPurpose marks the leases of machines among others of the same lock.
const fleetPurpose = "restart (FleetLock)"

// fleetRequest is the body of both calls.
type fleetRequest struct {
	Client struct {
		ID    string `json:"id"`
		Group string `json:"group"`
	} `json:"client_params"`
}

var fleetGroup = regexp.MustCompile(`^[a-zA-Z0-9.-]{1,200}$`)

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
	if p := s.read(w, r, &raw, maxBody); p != nil {
		s.refuseFleet(w, r, p.Status, "invalid_body", p.Detail)
		return
	}
	if err := json.Unmarshal(raw, &q); err != nil || q.Client.ID == "" || len(q.Client.ID) > 500 || !fleetGroup.MatchString(q.Client.Group) {
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
	defer s.states.lock(lock + "\x00" + q.Client.ID)() // two calls of one machine take one slot
	held, err := s.fleetSlot(r, lock, q.Client.ID, fleet.TTL)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotHeld):
	case call == "pre-reboot" && err == nil:
		err = s.Store.Renew(r.Context(), []store.Lease{held})[0]
	case call == "pre-reboot":
		_, err = s.Store.Acquire(r.Context(), store.AcquireRequest{Lease: fleet.lease(lock, q.Client.ID)})
	case err == nil:
		err = s.Store.Release(r.Context(), store.ReleaseRequest{Lease: held, Renewed: true})
	default:
		err = nil // it had no slot
	}
	var busy *store.BusyError
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
	case errors.As(err, &busy):
		s.refuseFleet(w, r, http.StatusConflict, "all_slots_taken", fmt.Sprintf("all %d slots of group %s are taken, one by %s for at most %v", fleet.Slots, q.Client.Group, busy.Holder, busy.ExpiresIn.Round(time.Second)))
	default:
		p := httpapi.ProblemOf(err)
		s.refuseFleet(w, r, p.Status, "store_"+p.Kind(), p.Detail)
	}
}

// fleetSlot returns the lease that the machine called id has. The error matches store.ErrNotHeld
// if it has none.
func (s *Server) fleetSlot(r *http.Request, lock, id string, ttl time.Duration) (store.Lease, error) {
	st, err := s.Store.Inspect(r.Context(), lock)
	if err != nil {
		return store.Lease{}, err
	}
	for _, h := range st.Holdings() {
		if h.Holder.Host == id && h.Holder.Purpose == fleetPurpose {
			l := store.Lease{Name: lock, Owner: h.Holder.Owner, TTL: ttl}
			_, err := s.heldAs(r.Context(), &l)
			return l, err
		}
	}
	return store.Lease{}, store.ErrNotHeld
}
