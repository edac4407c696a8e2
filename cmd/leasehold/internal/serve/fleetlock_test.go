package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// fleet sends a request as Zincati does.
func fleet(t testing.TB, url, call, group, id string, headers ...string) (status int, kind, value string) {
	t.Helper()
	body, _ := json.Marshal(m{"client_params": m{"id": id, "group": group}})
	status, text := send(t, "POST", url+"/fleetlock/v1/"+call, string(body), append([]string{"fleet-lock-protocol", "true"}, headers...)...)
	var answer struct{ Kind, Value string }
	if status != 200 {
		if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Kind == "" || answer.Value == "" {
			t.Errorf("%s %s: %d %s, want a kind and a value", call, id, status, text)
		}
	}
	return status, answer.Kind, answer.Value
}

// As many machines of a group restart at a time as it has slots. A machine may ask again, and gives
// back its own slot alone.
func TestFleetLock(t *testing.T) {
	url, _ := start(t, serve.Options{Fleets: map[string]serve.Fleet{"default": {Slots: 1, TTL: 8 * time.Hour}, "workers": {Slots: 2, TTL: time.Hour}}})
	for _, step := range []struct {
		call, group, id string
		status          int
		kind            string
	}{
		{"steady-state", "default", "a", 200, ""}, // at its start, without a slot
		{"pre-reboot", "default", "a", 200, ""},
		{"pre-reboot", "default", "a", 200, ""},
		{"pre-reboot", "default", "b", 409, "all_slots_taken"},
		{"steady-state", "default", "b", 200, ""},
		{"pre-reboot", "default", "b", 409, "all_slots_taken"},
		{"pre-reboot", "workers", "b", 200, ""},
		{"pre-reboot", "workers", "a", 200, ""},
		{"pre-reboot", "workers", "c d/é", 409, "all_slots_taken"},
		{"steady-state", "workers", "a", 200, ""},
		{"steady-state", "workers", "a", 200, ""},
		{"pre-reboot", "workers", "c d/é", 200, ""},
		{"pre-reboot", "workers", "A", 409, "all_slots_taken"},
		{"pre-reboot", "other", "a", 404, "unknown_group"},
		{"pre-reboot", "a/b", "a", 400, "invalid_client_params"},
		{"pre-reboot", "", "a", 400, "invalid_client_params"},
		{"pre-reboot", strings.Repeat("g", 200), "a", 404, "unknown_group"},
		{"pre-reboot", strings.Repeat("g", 201), "a", 400, "invalid_client_params"},
		{"pre-reboot", "default", "", 400, "invalid_client_params"},
	} {
		status, kind, value := fleet(t, url, step.call, step.group, step.id)
		if status != step.status || kind != step.kind {
			t.Errorf("%+v: %d %s %s", step, status, kind, value)
		}
		if kind == "all_slots_taken" && step.group == "default" && !strings.Contains(value, "a") {
			t.Errorf("refused without the machine that has the slot: %s", value)
		}
	}
	at := url + "/fleetlock/v1/pre-reboot"
	sends(t, 400, "POST", at, `{"client_params":{"id":"a","group":"default"}}`)
	sends(t, 405, "GET", at, "", "fleet-lock-protocol", "true")
	for _, body := range []string{"", "null", "[]", `"x"`, `{"client_params":null}`, `{"client_params":{"id":7}}`, "{"} {
		sends(t, 400, "POST", at, body, "fleet-lock-protocol", "true")
	}
	sends(t, 413, "POST", at, strings.Repeat(" ", 70_000), "fleet-lock-protocol", "true")
}

// However many machines ask at once, and however often each does, a group has no more holders
// than slots, and a machine has one slot.
func TestFleetLockAtOnce(t *testing.T) {
	url, _ := start(t, serve.Options{Fleets: map[string]serve.Fleet{"default": {Slots: 2, TTL: time.Hour}}})
	var inside, turns atomic.Int32
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			id := fmt.Sprint(i)
			for done := 0; done < 5; {
				var granted atomic.Int32
				var twice sync.WaitGroup
				for range 2 {
					twice.Go(func() {
						status, kind, value := fleet(t, url, "pre-reboot", "default", id)
						if status == 200 {
							granted.Add(1)
						} else if kind != "all_slots_taken" {
							t.Errorf("pre-reboot: %d %s %s", status, kind, value)
						}
					})
				}
				twice.Wait()
				if granted.Load() == 0 {
					continue
				}
				if n := inside.Add(1); n > 2 {
					t.Errorf("%d machines restart at a time", n)
				}
				done++
				turns.Add(1)
				inside.Add(-1)
				if status, kind, value := fleet(t, url, "steady-state", "default", id); status != 200 {
					t.Errorf("steady-state: %d %s %s", status, kind, value)
				}
			}
		})
	}
	group.Wait()
	if r := ask(t, "GET", url, "/v1/locks/fleetlock%2Fdefault", nil); r.body["held"] != false {
		t.Errorf("a slot is left: %s", r.text)
	}
}

// A machine needs the right to lock, and a slot is seen as other leases are.
func TestFleetLockRights(t *testing.T) {
	file, _ := rightsFile(t, m{"name": "nodes", "token_sha256": []string{hash("n")}, "rules": []m{{"prefix": "fleetlock/default", "rights": []string{"lock", "look"}}}})
	url, _ := start(t, serve.Options{Rights: file, Fleets: map[string]serve.Fleet{"default": {Slots: 1, TTL: time.Hour}, "other": {Slots: 1, TTL: time.Hour}}})
	auth := []string{"Authorization", "Bearer n"}
	if status, _, _ := fleet(t, url, "pre-reboot", "default", "a", auth...); status != 200 {
		t.Errorf("pre-reboot: %d", status)
	}
	if status, kind, _ := fleet(t, url, "pre-reboot", "other", "a", auth...); status != 403 || kind != "forbidden" {
		t.Errorf("without a right: %d %s", status, kind)
	}
	if r := ask(t, "GET", url, "/v1/locks/fleetlock%2Fdefault", nil, auth...); !strings.Contains(string(r.text), `"host":"a"`) {
		t.Errorf("the slot is shown as %s", r.text)
	}
}

// A machine that asks two servers of a store at the same instant gets one slot.
func TestFleetLockTwoServers(t *testing.T) {
	both := &meeting{Engine: memstore.New(nil).Engine()}
	both.group.Add(2)
	st := store.New(both)
	t.Cleanup(func() { st.Close() })
	o := serve.Options{Store: st, Fleets: map[string]serve.Fleet{"default": {Slots: 2, TTL: time.Hour}}}
	one, _ := start(t, o)
	two, _ := start(t, o)
	var asks sync.WaitGroup
	for _, url := range []string{one, two} {
		asks.Go(func() {
			if status, kind, value := fleet(t, url, "pre-reboot", "default", "a"); status != 200 {
				t.Errorf("pre-reboot: %d %s %s", status, kind, value)
			}
		})
	}
	asks.Wait()
	if held, err := st.Inspect(t.Context(), "fleetlock/default"); err != nil || len(held.Holdings()) != 1 {
		t.Errorf("the machine has %d slots, %v", len(held.Holdings()), err)
	}
	fleet(t, two, "steady-state", "default", "a")
	if held, err := st.Inspect(t.Context(), "fleetlock/default"); err != nil || len(held.Holdings()) != 0 {
		t.Errorf("%d slots are left, %v", len(held.Holdings()), err)
	}
}

// meeting is an engine where requests to acquire wait for each other.
type meeting struct {
	store.Engine
	group sync.WaitGroup
}

func (m *meeting) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	m.group.Done()
	m.group.Wait()
	return m.Engine.Acquire(ctx, r)
}

// Each refusal has a kind and a value, also of a client or a path that the server does not know.
func TestFleetLockRefusals(t *testing.T) {
	file, _ := rightsFile(t, m{"name": "nodes", "token_sha256": []string{hash("n")}, "rules": []m{{"prefix": "fleetlock/", "rights": []string{"lock"}}}, "limits": m{"requests_per_second": 1}})
	url, _ := start(t, serve.Options{Rights: file, Prefix: "/locks", Fleets: map[string]serve.Fleet{"default": {Slots: 1, TTL: time.Hour}}})
	auth := []string{"Authorization", "Bearer n"}
	for _, ask := range []struct {
		call, kind string
		status     int
		headers    []string
	}{
		{"pre-reboot", "unauthorized", 401, nil},
		{"reboot", "not-found", 404, auth},
	} {
		if status, kind, value := fleet(t, url+"/locks", ask.call, "default", "a", ask.headers...); status != ask.status || kind != ask.kind {
			t.Errorf("%s: %d %s %s, want %d %s", ask.call, status, kind, value, ask.status, ask.kind)
		}
	}
	for {
		if status, kind, _ := fleet(t, url+"/locks", "steady-state", "default", "a", auth...); status == 429 && kind == "too-many" {
			break
		} else if status != 200 {
			t.Fatalf("asked often: %d %s", status, kind)
		}
	}
}
