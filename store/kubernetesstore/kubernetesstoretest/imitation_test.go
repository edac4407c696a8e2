package kubernetesstoretest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/door"
)

// imitation answers requests for Lease objects as the documentation of the API says, from memory. It is no
// API server: it has no etcd, no admission, no RBAC, one version of Kubernetes, and only the
// requests that the driver and LeaseLock make. Tests use it if there is no real one. It was
// written by the authors of the driver, so it can share their mistakes.
type imitation struct {
	namespace string

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced by each write
	revision int
	objects  map[string]map[string]any
	events   []event
}

type event struct {
	revision int
	Type     string         `json:"type"`
	Object   map[string]any `json:"object"`
}

// imitate returns an imitation behind a door.
func imitate(t testing.TB) *server {
	t.Helper()
	// Others have written before.
	m := &imitation{namespace: fmt.Sprint("n", namespaces.Add(1)), revision: 1000, objects: map[string]map[string]any{}, changed: make(chan struct{})}
	return &server{Door: door.Open(t, m), namespace: m.namespace, imitation: m}
}

// part returns a field of an object.
func part(o map[string]any, path ...string) any {
	for _, name := range path[:len(path)-1] {
		o, _ = o[name].(map[string]any)
	}
	return o[path[len(path)-1]]
}

// merge is that of RFC 7386.
func merge(into, patch map[string]any) map[string]any {
	out := maps.Clone(into)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range patch {
		inner, isMap := v.(map[string]any)
		old, _ := out[k].(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isMap:
			out[k] = merge(old, inner)
		default:
			out[k] = v
		}
	}
	return out
}

func (m *imitation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v) // the client may be gone
	}
	var body map[string]any
	if r.Method != http.MethodGet && r.Method != http.MethodDelete {
		in := json.NewDecoder(r.Body)
		in.UseNumber()
		if err := in.Decode(&body); err != nil {
			failure(w, http.StatusBadRequest, "BadRequest")
			return
		}
	}
	const all = "/apis/coordination.k8s.io/v1/namespaces/"
	namespace, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, all), "/leases")
	name = strings.TrimPrefix(name, "/")
	q := r.URL.Query()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+admin:
		failure(w, http.StatusUnauthorized, "Unauthorized")
		return
	case r.URL.Path == "/version":
		answer(http.StatusOK, map[string]string{"gitVersion": "v0.0.0-imitation"})
		return
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		answer(http.StatusCreated, merge(body, map[string]any{"status": map[string]any{"allowed": true}}))
		return
	case !strings.HasPrefix(r.URL.Path, all):
		failure(w, http.StatusNotFound, "NotFound")
		return
	case q.Get("watch") == "true":
		m.watch(w, r, namespace)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, exists := m.objects[name]
	exists = exists && namespace == m.namespace
	version, uid, manager := part(body, "metadata", "resourceVersion"), part(body, "metadata", "uid"), cmp.Or(q.Get("fieldManager"), "other")
	old := part(o, "metadata", "resourceVersion")
	switch {
	case r.Method == http.MethodGet && name == "":
		m.listLocked(w, r, namespace)
	case r.Method == http.MethodPost && namespace != m.namespace:
		failure(w, http.StatusNotFound, "NotFound")
	case r.Method == http.MethodPost:
		name, _ := part(body, "metadata", "name").(string)
		if m.objects[name] != nil {
			failure(w, http.StatusConflict, "AlreadyExists")
			return
		}
		answer(http.StatusCreated, m.createLocked(name, body, manager))
	case r.Method == http.MethodPut && uid != nil && uid != part(o, "metadata", "uid"):
		failure(w, http.StatusConflict, "Conflict") // also if there is no object
	case r.Method == http.MethodPut && !exists: // without a uid, a PUT makes a Lease
		answer(http.StatusCreated, m.createLocked(name, body, manager))
	case !exists:
		failure(w, http.StatusNotFound, "NotFound")
	case r.Method == http.MethodGet:
		answer(http.StatusOK, o)
	case r.Method == http.MethodDelete:
		m.writeLocked(name, "DELETED", o, "")
		answer(http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	case r.Method == http.MethodPut && version == nil:
		failure(w, http.StatusUnprocessableEntity, "Invalid")
	case version != nil && version != old:
		failure(w, http.StatusConflict, "Conflict")
	case r.Method == http.MethodPut:
		answer(http.StatusOK, m.writeLocked(name, "MODIFIED", body, manager))
	default:
		failure(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

// createLocked makes an object, and returns it.
func (m *imitation) createLocked(name string, o map[string]any, manager string) map[string]any {
	return m.writeLocked(name, "ADDED", merge(o, map[string]any{"metadata": map[string]any{"uid": fmt.Sprint("uid-", m.revision)}}), manager)
}

// writeLocked makes a new version of an object, and returns it.
func (m *imitation) writeLocked(name, kind string, o map[string]any, manager string) map[string]any {
	m.revision++
	meta := map[string]any{"name": name, "namespace": m.namespace, "resourceVersion": fmt.Sprint(m.revision)}
	if manager != "" {
		meta["managedFields"] = []any{map[string]any{"manager": manager, "operation": "Update", "time": time.Now().UTC().Format(time.RFC3339)}}
	}
	o = merge(o, map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta})
	if m.objects[name] = o; kind == "DELETED" {
		delete(m.objects, name)
	}
	m.events = append(m.events, event{m.revision, kind, o})
	close(m.changed)
	m.changed = make(chan struct{})
	return o
}

// selects reports whether a request is about an object.
func selects(r *http.Request, o map[string]any) bool {
	q := r.URL.Query()
	if name, ok := strings.CutPrefix(q.Get("fieldSelector"), "metadata.name="); ok && part(o, "metadata", "name") != name {
		return false
	}
	label := q.Get("labelSelector")
	return label == "" || part(o, "metadata", "labels", label) != nil
}

// listLocked sends a page. A continuation has the revision of the first page, and the last name.
func (m *imitation) listLocked(w http.ResponseWriter, r *http.Request, namespace string) {
	q := r.URL.Query()
	revision, after := m.revision, ""
	if from := q.Get("continue"); from != "" {
		first, last, _ := strings.Cut(from, " ")
		revision, _ = strconv.Atoi(first)
		after = last
	}
	limit := len(m.objects)
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n > 0 {
		limit = n
	}
	items, next := []any{}, ""
	for _, name := range slices.Sorted(maps.Keys(m.objects)) {
		if o := m.objects[name]; namespace == m.namespace && name > after && selects(r, o) {
			if len(items) == limit {
				next = fmt.Sprint(revision, " ", part(items[limit-1].(map[string]any), "metadata", "name"))
				break
			}
			items = append(items, o)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList",
		"metadata": map[string]any{"resourceVersion": fmt.Sprint(revision), "continue": next}, "items": items,
	})
}

// watch sends the object as it is, a bookmark, and then what changes.
func (m *imitation) watch(w http.ResponseWriter, r *http.Request, namespace string) {
	m.mu.Lock()
	at, changed := m.revision, m.changed
	var news []event
	for _, o := range m.objects {
		if namespace == m.namespace && selects(r, o) {
			news = append(news, event{Type: "ADDED", Object: o})
		}
	}
	m.mu.Unlock()
	news = append(news, event{Type: "BOOKMARK", Object: map[string]any{"kind": "Lease", "metadata": map[string]any{"resourceVersion": fmt.Sprint(at)}}})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for {
		for _, e := range news {
			if json.NewEncoder(w).Encode(e) != nil || e.Type == "ERROR" {
				return
			}
		}
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
		m.mu.Lock()
		news = nil
		changed = m.changed
		from, _ := slices.BinarySearchFunc(m.events, at+1, func(e event, n int) int { return cmp.Compare(e.revision, n) })
		for _, e := range m.events[from:] {
			if namespace == m.namespace && selects(r, e.Object) {
				news = append(news, e)
			}
		}
		at = m.revision
		m.mu.Unlock()
	}
}
