package serve_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// Each type of problem has a heading that its address leads to.
func TestProblemsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range httpapi.Types() {
		if p := httpapi.New(kind, ""); !strings.Contains(string(text), "\n### "+kind+"\n") || p.Status < 400 || p.Title == "" || p.Advice == "" {
			t.Errorf("docs/serve.md has no heading %q, or %+v is incomplete", kind, p)
		}
	}
}

// handle answers a request without a network. The context of a stream has ended.
func handle(t *testing.T, s *serve.Server, method, path, body string) *httptest.ResponseRecorder {
	u, err := url.Parse("http://localhost/")
	if err != nil {
		t.Fatal(err)
	}
	raw := path
	if u.Path, err = url.PathUnescape(path); err != nil {
		u.Path, raw = path, ""
	}
	u.RawPath = raw
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost/", strings.NewReader(body))
	r.URL = u
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if kind := w.Header().Get("Content-Type"); w.Code >= 400 {
		if kind != "application/problem+json" {
			t.Errorf("%s %q: %d with %s", method, path, w.Code, kind)
		}
		validate(t, "Problem", w.Body.Bytes())
	}
	return w
}

// Whatever a path is, it names the lock of the decoded bytes, or is refused.
func FuzzNamesOverHTTP(f *testing.F) {
	for _, seed := range []string{"a", "a/b", "..", "%2e%2e", "a%2f..%2fb", "%", "%zz", "%00", "a//", "leasehold:x", "\xff", "é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		st := memstore.New(nil)
		defer st.Close()
		owner := store.NewOwner()
		w := handle(t, serve.New(serve.Options{Store: st}), http.MethodPost, "/v1/locks/"+path+"/acquire", `{"owner":"`+owner+`"}`)
		all, err := st.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if w.Code != http.StatusOK {
			if len(all) > 0 {
				t.Fatalf("%q: refused (%d), but %q is held", path, w.Code, all[0].Name)
			}
			return
		}
		var g httpapi.Grant
		if err := json.Unmarshal(w.Body.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		name, err := g.Text()
		if err != nil || len(all) != 1 || all[0].Name != name || all[0].Holder.Owner != owner || store.CheckName(name) != nil {
			t.Fatalf("%q: answered for %q, %v, and held is %+v", path, name, err, all)
		}
		if escaped := (&url.URL{Path: "/v1/locks/" + path + "/acquire", RawPath: "/v1/locks/" + path + "/acquire"}).EscapedPath(); strings.Contains(escaped, "/../") {
			t.Fatalf("%q has a part .. that a proxy resolves", path)
		}
	})
}

// Whatever a body is, the answer is as openapi.json says, and a lease that was granted has the
// owner and a TTL of the request.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{`{"owner":"o"}`, `{"owner":"o","ttl_ms":1e3,"kind":"semaphore","permits":3}`, `{"token":1}`, `{"from":1,"to":2}`, `{"leases":[{"name":"a","owner":"o"}]}`, `[]`, `null`, `{"owner":"o","meta_base64":"!"}`, `{"owner":"o","ttl_ms":-1}`} {
		f.Add(uint8(0), seed)
	}
	verbs := []string{"locks/a/acquire", "locks/a/renew", "locks/a/release", "locks/a/downgrade", "locks/a/resize", "locks/a/break", "renew", "batch"}
	f.Fuzz(func(t *testing.T, verb uint8, body string) {
		if strings.Contains(body, "wait") { // it may last
			return
		}
		st := memstore.New(nil)
		defer st.Close()
		w := handle(t, serve.New(serve.Options{Store: st, Patience: time.Second}), http.MethodPost, "/v1/"+verbs[int(verb)%len(verbs)], body)
		if w.Code >= 500 {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
		if w.Code == http.StatusOK && int(verb)%len(verbs) == 0 {
			validate(t, "Grant", w.Body.Bytes())
		}
	})
}
