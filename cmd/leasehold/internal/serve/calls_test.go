package serve_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
)

type m = map[string]any

// A client without streams acquires, renews and releases. Asked again, the server answers the
// same; the owner is all that names the lease.
func TestPlainCalls(t *testing.T) {
	url, _ := start(t, serve.Options{})
	owner := store.NewOwner()
	body := m{"owner": owner, "ttl_ms": 60_000, "purpose": "invoices", "host": "h", "pid": 7}
	first := ask(t, "POST", url, "/v1/locks/a/acquire", body)
	again := ask(t, "POST", url, "/v1/locks/a/acquire", body)
	if first.status != 200 || first.num("token") == 0 || again.num("token") != first.num("token") || first.num("valid_ms") != 59_398 {
		t.Fatalf("%s, again %s, want the same grant, valid for 59.398 s", first.text, again.text)
	}
	other := ask(t, "POST", url, "/v1/locks/a/acquire", m{"owner": store.NewOwner()})
	if holder, _ := other.body["holder"].(m); other.status != http.StatusConflict || other.kind != httpapi.Busy || holder["owner"] != owner || holder["purpose"] != "invoices" || other.str("advice") == "" {
		t.Errorf("another owner: %d %s, want 409 with the holder and what to do", other.status, other.text)
	}
	if r := ask(t, "POST", url, "/v1/locks/a/renew", m{"owner": owner, "ttl_ms": 90_000}); r.status != 200 || r.num("valid_ms") != 89_098 {
		t.Errorf("renew with the owner alone: %d %s", r.status, r.text)
	}
	if r := ask(t, "GET", url, "/v1/locks/a", nil); r.str("owner") != owner || r.num("expires_in_ms") < 80_000 || r.str("kind") != "mutex" {
		t.Errorf("the lock: %s", r.text)
	}
	if r := ask(t, "GET", url, "/v1/locks?prefix=a", nil); len(r.body["locks"].([]any)) != 1 {
		t.Errorf("the locks: %s", r.text)
	}
	if r := ask(t, "POST", url, "/v1/locks/a/release", m{"owner": owner}); r.status != http.StatusNoContent {
		t.Errorf("release: %d %s", r.status, r.text)
	}
	for _, call := range []string{"release", "renew"} {
		if r := ask(t, "POST", url, "/v1/locks/a/"+call, m{"owner": owner}); r.kind != httpapi.NotHeld {
			t.Errorf("%s after the release: %d %s, want not-held", call, r.status, r.text)
		}
	}
	if r := ask(t, "GET", url, "/v1/store", nil); r.str("engine") != "memory" {
		t.Errorf("the store: %s", r.text)
	}
	if r := ask(t, "GET", url, "/v1/openapi.json", nil); !strings.HasPrefix(r.str("openapi"), "3.1") {
		t.Errorf("the document: %.80s", r.text)
	}
}

// An acquire can wait, and says why it gave up.
func TestAcquireWaits(t *testing.T) {
	url, _ := start(t, serve.Options{})
	owner := store.NewOwner()
	ask(t, "POST", url, "/v1/locks/a/acquire", m{"owner": owner})
	if r := ask(t, "POST", url, "/v1/locks/a/acquire", m{"owner": store.NewOwner(), "wait_ms": 30}); r.kind != httpapi.Busy || !strings.Contains(r.str("detail"), "deadline") {
		t.Errorf("a wait of 30 ms: %d %s, want busy", r.status, r.text)
	}
	done := make(chan *reply)
	waiter := store.NewOwner()
	go func() {
		done <- ask(t, "POST", url, "/v1/locks/a/acquire", m{"owner": waiter, "wait_ms": -1})
	}()
	eventually.True(t, "the waiter queues", func() bool { return ask(t, "GET", url, "/v1/locks/a", nil).body["queue"] != nil })
	ask(t, "POST", url, "/v1/locks/a/release", m{"owner": owner})
	got := <-done
	if got.status != 200 || got.str("owner") != waiter {
		t.Fatalf("the waiter: %d %s, want the lock", got.status, got.text)
	}
	if again := ask(t, "POST", url, "/v1/locks/a/acquire", m{"owner": waiter, "wait_ms": -1}); again.num("token") != got.num("token") {
		t.Errorf("asked again: %s, want the same lease as %s", again.text, got.text)
	}
}

// A hold lasts as long as its connection. A waiter is told of its position and its holder, and
// gets the lock when the holder's connection ends.
func TestHold(t *testing.T) {
	url, _ := start(t, serve.Options{Heartbeat: 20 * time.Millisecond})
	a := open(t, url, "/v1/locks/a/hold", m{"ttl_ms": 60_000, "purpose": "first"})
	held := a.next()
	if held["event"] != "held" || held["valid_ms"].(float64) < 50_000 || held["token"] == nil || held["at_ms"].(float64) < 0 {
		t.Fatalf("the first line: %v", held)
	}
	b := open(t, url, "/v1/locks/a/hold", m{"purpose": "second"})
	waits := b.next()
	if holder, _ := waits["holder"].(m); waits["event"] != "waiting" || waits["position"] != 1.0 || holder["purpose"] != "first" {
		t.Errorf("the second waits: %v, want its position and the holder", waits)
	}
	if again := a.next(); again["event"] != "held" || again["token"] != held["token"] {
		t.Errorf("a heartbeat of the holder: %v, want held with the same token", again)
	}
	a.close()
	if got := b.next("waiting"); got["event"] != "held" || got["token"].(float64) <= held["token"].(float64) {
		t.Errorf("after the holder is gone: %v, want the lock with a larger token", got)
	}
	b.close()
	eventually.True(t, "the lock is free", func() bool { return ask(t, "GET", url, "/v1/locks/a", nil).body["held"] == false })
}

// Each kind of lock can be held, and a hold that waits no longer says so.
func TestHoldKinds(t *testing.T) {
	url, _ := start(t, serve.Options{})
	for i, c := range []struct{ first, fits, not m }{
		{m{"kind": "mutex"}, nil, m{}},
		{m{"kind": "semaphore", "permits": 3, "weight": 2}, m{"kind": "semaphore", "permits": 3}, m{"kind": "semaphore", "permits": 3}},
		{m{"kind": "read"}, m{"kind": "read"}, m{"kind": "write"}},
		{m{"kind": "write"}, nil, m{"kind": "read"}},
	} {
		path := fmt.Sprintf("/v1/locks/%d/hold", i)
		if e := open(t, url, path, c.first).next(); e["event"] != "held" {
			t.Fatalf("%v: %v", c.first, e)
		}
		if c.fits != nil {
			if e := open(t, url, path, c.fits).next(); e["event"] != "held" {
				t.Errorf("%v beside %v: %v", c.fits, c.first, e)
			}
		}
		c.not["wait_ms"] = 0
		if r := ask(t, "POST", url, path, c.not); r.kind != httpapi.Busy {
			t.Errorf("%v beside %v: %d %s, want busy", c.not, c.first, r.status, r.text)
		}
		ask(t, "GET", url, fmt.Sprintf("/v1/locks/%d", i), nil)
	}
	if r := ask(t, "POST", url, "/v1/locks/0/hold", m{"kind": "read"}); r.kind != httpapi.KindMismatch {
		t.Errorf("a reader of a mutex: %d %s", r.status, r.text)
	}
}

// A client that asks for server-sent events gets them.
func TestHoldAsServerSentEvents(t *testing.T) {
	url, _ := start(t, serve.Options{})
	resp, err := http.DefaultClient.Do(request(t, "POST", url, "/v1/locks/a/hold", nil, "Accept", "text/event-stream"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	event, _ := r.ReadString('\n')
	data, _ := r.ReadString('\n')
	end, _ := r.ReadString('\n')
	if event != "event: held\n" || !strings.HasPrefix(data, `data: {"event":"held"`) || end != "\n" {
		t.Errorf("%q %q %q, want a server-sent event", event, data, end)
	}
	validate(t, "Event", []byte(strings.TrimPrefix(data, "data: ")))
}

// The holder is told when its lease is broken, and the break is seen.
func TestBreak(t *testing.T) {
	url, _ := start(t, serve.Options{})
	h := open(t, url, "/v1/locks/a/hold", m{"ttl_ms": 60_000})
	token := h.next()["token"]
	if r := ask(t, "POST", url, "/v1/locks/a/break", m{"token": token.(float64) + 1}); r.kind != httpapi.Busy {
		t.Errorf("another token: %d %s, want busy", r.status, r.text)
	}
	if r := ask(t, "POST", url, "/v1/locks/a/break", m{"token": token, "reason": "it hangs"}); r.status != 200 {
		t.Fatalf("break: %d %s", r.status, r.text)
	}
	lost := h.next("held")
	if lost["event"] != "lost" || !strings.Contains(lost["reason"].(string), "it hangs") {
		t.Errorf("the holder is told %v, want lost with the reason", lost)
	}
	h.over()
	eventually.True(t, "the break ends", func() bool {
		r := ask(t, "POST", url, "/v1/locks/a/break", m{"token": token})
		return r.status == 200 && r.num("left_ms") == 0
	})
	if r := ask(t, "GET", url, "/v1/locks/a", nil); r.body["broken"] == nil {
		t.Errorf("the lock: %s, want who broke the lease", r.text)
	}
}

// A server that ends tells holders for how long their leases last, and leaves the leases in the
// store. A holder goes on at another server, and a waiter waits there.
func TestRollingRestart(t *testing.T) {
	a, first := start(t, serve.Options{})
	b, _ := start(t, serve.Options{Store: first.Store})
	h := open(t, a, "/v1/locks/a/hold", m{"ttl_ms": 60_000})
	held := h.next()
	w := open(t, a, "/v1/locks/a/hold", m{"ttl_ms": 60_000})
	w.next()
	first.Leave()
	left := h.next("held")
	if left["event"] != "leaving" || left["owner"] != held["owner"] || left["valid_ms"].(float64) < 50_000 {
		t.Fatalf("the holder is told %v, want leaving", left)
	}
	h.over()
	if e := w.next("waiting"); e["event"] != "leaving" {
		t.Errorf("the waiter is told %v, want leaving", e)
	}
	if r := ask(t, "POST", a, "/v1/locks/a/hold", nil); r.kind != httpapi.Closing {
		t.Errorf("a new hold there: %d %s, want leaving", r.status, r.text)
	}
	on := open(t, b, "/v1/locks/a/hold", m{"owner": held["owner"], "ttl_ms": 60_000})
	if e := on.next(); e["event"] != "held" || e["token"] != held["token"] {
		t.Fatalf("the holder goes on at another server with %v, want the same lease", e)
	}
	on.close()
	eventually.True(t, "the lock is free", func() bool { return ask(t, "GET", b, "/v1/locks/a", nil).body["held"] == false })
	if r := ask(t, "POST", b, "/v1/locks/a/hold", m{"owner": held["owner"]}); r.kind != httpapi.NotHeld {
		t.Errorf("going on with a lease that is gone: %d %s, want not-held", r.status, r.text)
	}
}

// A hold that is to be kept outlives its connection for its TTL, and no longer.
func TestKeptHold(t *testing.T) {
	url, _ := start(t, serve.Options{})
	h := open(t, url, "/v1/locks/a/hold", m{"ttl_ms": 700, "keep": true})
	held := h.next()
	time.Sleep(time.Until(h.sent.Add(1500 * time.Millisecond))) // it is renewed meanwhile
	h.close()
	on := open(t, url, "/v1/locks/a/hold", m{"owner": held["owner"], "ttl_ms": 700, "keep": true})
	if e := on.next(); e["token"] != held["token"] {
		t.Fatalf("the holder is back: %v, want token %v", e, held["token"])
	}
	on.close()
	eventually.True(t, "the lease ends", func() bool { return ask(t, "GET", url, "/v1/locks/a", nil).body["held"] == false })
}

// Each wrong request has an answer that says what is wrong.
func TestWrongRequests(t *testing.T) {
	url, _ := start(t, serve.Options{})
	long := strings.Repeat("x", 64<<10)
	owner := store.NewOwner()
	for _, c := range []struct {
		method, path string
		body         any
		want         string
	}{
		{"GET", "/", nil, httpapi.NotFound},
		{"GET", "/v1", nil, httpapi.NotFound},
		{"GET", "/v1/", nil, httpapi.NotFound},
		{"GET", "/v2/locks", nil, httpapi.NotFound},
		{"DELETE", "/v1/locks/a", nil, httpapi.WrongMethod},
		{"PUT", "/v1/locks/a/acquire", nil, httpapi.WrongMethod},
		{"POST", "/v1/locks", nil, httpapi.WrongMethod},
		{"POST", "/v1/store", nil, httpapi.WrongMethod},
		{"GET", "/v1/renew", nil, httpapi.WrongMethod},
		{"POST", "/v1/locks/a", nil, httpapi.NotFound},
		{"POST", "/v1/locks/a/steal", nil, httpapi.NotFound},
		{"GET", "/v1/locks/", nil, httpapi.Invalid},
		{"POST", "/v1/locks//acquire", m{"owner": owner}, httpapi.Invalid},
		{"GET", "/v1/locks/" + long, nil, httpapi.Invalid},
		{"GET", "/v1/locks/leasehold:x", nil, httpapi.Invalid},
		{"GET", "/v1/locks/a/../b", nil, httpapi.Invalid},
		{"GET", "/v1/locks/..", nil, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", nil, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o o"}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o","ttl_ms":-5}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o","ttl_ms":"5"}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o","ttl_ms":1e400}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o","ttl_ms":1e300}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o","tll_ms":5}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o"}{"owner":"p"}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o","kind":"spin"}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o","kind":"semaphore"}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o","kind":"semaphore","permits":2,"weight":3}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o","require":"most"}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o","require":"consensus"}`, httpapi.Unsupported},
		{"POST", "/v1/locks/a/acquire", `[`, httpapi.Invalid},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o","purpose":"` + long + `"}`, httpapi.TooLarge},
		{"POST", "/v1/locks/a/acquire", `{"owner":"o","purpose":"` + long[:5000] + `"}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/hold", `{"ttl_ms":0.5}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/hold", `{"kind":"semaphore","permits":-1}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/break", `{}`, httpapi.Invalid},
		{"POST", "/v1/locks/b/break", `{"token":7}`, httpapi.NotHeld},
		{"POST", "/v1/locks/a/break", `{"token":-7}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/resize", `{"from":0,"to":1}`, httpapi.Invalid},
		{"POST", "/v1/locks/a/downgrade", m{"owner": owner}, httpapi.Invalid},
		{"POST", "/v1/locks/a/downgrade", m{"owner": owner, "kind": "write"}, httpapi.NotHeld},
	} {
		r := ask(t, c.method, url, c.path, c.body)
		if r.kind != c.want || r.str("detail") == "" || r.str("advice") == "" || len(r.text) > 2000 {
			t.Errorf("%s %.40s %.80v: %d %.300s, want the problem %s", c.method, c.path, c.body, r.status, r.text, c.want)
		}
	}
}

// Whatever its bytes are, a name is the same lock as in the library.
func TestNamesOverHTTP(t *testing.T) {
	url, s := start(t, serve.Options{})
	for path, name := range map[string]string{
		"a":                                  "a",
		"a/b":                                "a/b",
		"a%2Fb%2fc":                          "a/b/c",
		"a//b/":                              "a//b/",
		"%2e%2E":                             "..",
		"%2e/x":                              "./x",
		"a%2f..%2fb":                         "a/../b",
		"%252F":                              "%2F",
		"%00%0a%7f%ff":                       "\x00\n\x7f\xff",
		"a+b c;d=e":                          "a+b c;d=e",
		"%3F%23":                             "?#",
		"a/hold":                             "a/hold",
		"acquire":                            "acquire",
		"%E2%80%AE%C3%A9":                    "\u202e\u00e9",
		strings.Repeat("%78", store.MaxName): strings.Repeat("x", store.MaxName),
	} {
		owner := store.NewOwner()
		path = strings.ReplaceAll(path, " ", "%20")
		if r := ask(t, "POST", url, "/v1/locks/"+path+"/acquire", m{"owner": owner}); r.status != 200 {
			t.Errorf("%q: %d %s", path, r.status, r.text)
			continue
		}
		st, err := s.Store.Inspect(t.Context(), name)
		if err != nil || st.Holder.Owner != owner {
			t.Errorf("%q: the lock %q is held by %v, %v, want %s", path, name, st.Holder, err, owner)
		}
		var j struct {
			Name   string `json:"name"`
			Base64 []byte `json:"name_base64"`
			Owner  string
		}
		json.Unmarshal(ask(t, "GET", url, "/v1/locks/"+path, nil).text, &j)
		if j.Base64 != nil {
			j.Name = string(j.Base64)
		}
		if j.Name != name || j.Owner != owner {
			t.Errorf("%q: shown as %q of %q, want %q of %q", path, j.Name, j.Owner, name, owner)
		}
	}
}

// Downgrade, resize and the renewal of several leases do what they do in the library.
func TestChangesOverHTTP(t *testing.T) {
	url, _ := start(t, serve.Options{})
	w := store.NewOwner()
	ask(t, "POST", url, "/v1/locks/rw/acquire", m{"owner": w, "kind": "write"})
	if r := ask(t, "POST", url, "/v1/locks/rw/downgrade", m{"owner": w, "kind": "write"}); r.status != 200 {
		t.Errorf("downgrade: %d %s", r.status, r.text)
	}
	s := store.NewOwner()
	ask(t, "POST", url, "/v1/locks/s/acquire", m{"owner": s, "kind": "semaphore", "permits": 2})
	if r := ask(t, "POST", url, "/v1/locks/s/resize", m{"from": 2, "to": 5}); r.status != http.StatusNoContent {
		t.Errorf("resize: %d %s", r.status, r.text)
	}
	r := ask(t, "POST", url, "/v1/renew", m{"leases": []m{
		{"name": "rw", "owner": w, "kind": "read"},
		{"name": "nobody", "owner": s},
		{"name": "", "owner": s},
		{"name": "s", "owner": s, "kind": "spin"},
	}})
	var kinds []string
	for _, one := range r.body["results"].([]any) {
		kind := "renewed"
		if p, ok := one.(m); ok {
			kind = p["type"].(string)
			kind = kind[strings.LastIndexByte(kind, '#')+1:]
		}
		kinds = append(kinds, kind)
	}
	if want := []string{"renewed", httpapi.NotHeld, httpapi.Invalid, httpapi.Invalid}; !slices.Equal(kinds, want) {
		t.Errorf("renewals: %v, want %v", kinds, want)
	}
}

// A request of two lengths, or of a chunked body that hides another request, does nothing twice.
func TestSmuggledRequests(t *testing.T) {
	url, s := start(t, serve.Options{})
	i := 0
	for name, text := range map[string]string{
		"two lengths":        "POST /v1/locks/a/acquire HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 13\r\nContent-Length: 0\r\n\r\n{\"owner\":\"o\"}",
		"length and chunked": "POST /v1/locks/a/acquire HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"odd encoding":       "POST /v1/locks/a/acquire HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: xchunked\r\nContent-Length: 4\r\n\r\n",
		"two encodings":      "POST /v1/locks/a/acquire HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
		"space before colon": "POST /v1/locks/a/acquire HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length : 4\r\n\r\n",
		"two hosts":          "POST /v1/locks/a/acquire HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\nContent-Length: 0\r\n\r\n",
		"line feed in path":  "GET /v1/locks/a\nX: y HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
	} {
		i++
		hidden := fmt.Sprintf("hidden%d", i)
		answers := raw(t, url, text+"POST /v1/locks/"+hidden+"/acquire HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 13\r\n\r\n{\"owner\":\"x\"}")
		st, err := s.Store.Inspect(t.Context(), hidden)
		if err != nil || st.Held || strings.Contains(answers, " 200 OK") || strings.Count(answers, "HTTP/1.1 ") > 1 {
			t.Errorf("%s: the hidden request was served: %v, %v: %.400s", name, st.Holder, err, answers)
		}
	}
}

// raw sends text and returns what the server says until it closes, or is silent for a while.
func raw(t *testing.T, url, text string) string {
	t.Helper()
	c := dial(t, url)
	io.WriteString(c, text)
	c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	b, _ := io.ReadAll(c)
	return string(b)
}

// A short lease is renewed on time for the client of a hold, which believes what it is told.
func TestHoldOfAShortLease(t *testing.T) {
	url, _ := start(t, serve.Options{})
	l := open(t, url, "/v1/locks/a/hold", m{"ttl_ms": 3000})
	end := func() time.Time {
		e := l.next()
		return l.sent.Add(time.Duration(e["at_ms"].(float64)+e["valid_ms"].(float64)) * time.Millisecond)
	}
	for last := end(); time.Since(l.sent) < 3*time.Second; {
		next := end()
		if time.Now().After(last) {
			t.Fatalf("the lease was over for the client %v ago", time.Since(last))
		}
		last = next
	}
}
