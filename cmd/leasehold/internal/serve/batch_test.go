package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// batch sends lines, and returns the kind of each answer: empty if the call was done.
func batch(t testing.TB, url string, lines []m, headers ...string) (kinds []string, replies []map[string]any) {
	t.Helper()
	var body strings.Builder
	for _, l := range lines {
		b, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&body, "%s\n", b)
	}
	resp, err := http.DefaultClient.Do(request(t, "POST", url, "/v1/batch", body.String(), headers...))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return []string{checked(t, "POST", "/v1/batch", resp, b).kind}, nil
	}
	kinds, replies = make([]string, len(lines)), make([]map[string]any, len(lines))
	n := 0
	for line := range bytes.Lines(b) {
		validate(t, "Reply", line)
		var r map[string]any
		json.Unmarshal(line, &r)
		i := int(r["line"].(float64))
		if replies[i] != nil {
			t.Errorf("line %d is answered twice: %s", i, b)
		}
		replies[i] = r
		if p, ok := r["problem"].(map[string]any); ok {
			kinds[i] = p["type"].(string)[strings.LastIndexByte(p["type"].(string), '#')+1:]
		}
		n++
	}
	if n != len(lines) {
		t.Errorf("%d answers to %d calls: %s", n, len(lines), b)
	}
	return kinds, replies
}

// Each call of a batch is done by itself, and answered as the call alone would be.
func TestBatch(t *testing.T) {
	url, s := start(t, serve.Options{})
	other := store.NewOwner()
	for _, name := range []string{"taken", "old"} {
		ask(t, "POST", url, "/v1/locks/"+name+"/acquire", m{"owner": other})
	}
	owner := store.NewOwner()
	kinds, replies := batch(t, url, []m{
		{"do": "acquire", "name": "a", "owner": owner, "ttl_ms": 60_000, "purpose": "build"},
		{"do": "acquire", "name": "taken", "owner": owner},
		{"do": "release", "name": "taken", "owner": owner},
		{"do": "release", "name": "old", "owner": other},
		{"do": "acquire", "name": "s", "owner": owner, "kind": "semaphore", "permits": 3},
		{"do": "acquire", "name": "", "owner": owner},
		{"do": "acquire", "name": "b"},
		{"do": "acquire", "name": "b", "owner": owner, "wait_ms": 1000},
		{"do": "renew", "name": "a", "owner": owner},
	})
	want := []string{"", "busy", "not-held", "", "", "invalid", "invalid", "invalid", "invalid"}
	if strings.Join(kinds, ",") != strings.Join(want, ",") {
		t.Errorf("%q, want %q", kinds, want)
	}
	if held := ask(t, "GET", url, "/v1/locks/a", nil); held.num("token") != replies[0]["token"] || held.str("owner") != owner || held.str("purpose") != "build" {
		t.Errorf("granted %v, and held is %s", replies[0], held.text)
	}
	if kinds, _ := batch(t, url, nil); len(kinds) != 0 {
		t.Errorf("a batch without calls: %q", kinds)
	}
	// If a line is wrong, no call is done.
	for _, line := range []m{{"do": "acquire", "name": "b", "owner": 1}, {"do": "acquire", "name": "b", "owner": owner, "unknown": 1}} {
		if kinds, _ := batch(t, url, []m{{"do": "acquire", "name": "c", "owner": owner}, line}); kinds[0] != httpapi.Invalid {
			t.Errorf("%v: %q, want invalid", line, kinds)
		}
	}
	many := make([]m, 1025)
	for i := range many {
		many[i] = m{"do": "acquire", "name": "c", "owner": owner}
	}
	if kinds, _ := batch(t, url, many); kinds[0] != httpapi.TooLarge {
		t.Errorf("%q, want too-large", kinds)
	}
	if r := ask(t, "GET", url, "/v1/batch", nil); r.kind != httpapi.WrongMethod {
		t.Errorf("GET: %d %s", r.status, r.text)
	}
	if st, err := s.Store.Inspect(t.Context(), "c"); err != nil || st.Held {
		t.Errorf("%+v, %v, want that no call of a wrong batch is done", st, err)
	}
}

// A batch is no way around rights, limits, a read-only server or the check of origins.
func TestBatchRights(t *testing.T) {
	limited := client("limited", "limited-secret", "ci/", "lock")
	limited["limits"] = m{"requests_per_second": 3}
	f, _ := rightsFile(t, client("ci", "ci-secret", "ci/", "look", "lock"), client("ops", "ops-secret", "", "look", "break"), limited)
	url, s := start(t, serve.Options{Rights: f})
	owner := store.NewOwner()
	lines := []m{
		{"do": "acquire", "name": "ci/a", "owner": owner}, {"do": "acquire", "name": "prod", "owner": owner}, {"do": "acquire", "name": "Ci/a", "owner": owner},
		{"do": "acquire", "name": "x", "name_base64": "Y2kvYg==", "owner": owner},    // ci/b
		{"do": "acquire", "name": "ci/c", "name_base64": "cHJvZA==", "owner": owner}, // prod
		{"do": "release", "name": "prod", "owner": owner},
	}
	kinds, _ := batch(t, url, lines, "Authorization", "Bearer ci-secret")
	if want := []string{"", "forbidden", "forbidden", "", "forbidden", "forbidden"}; strings.Join(kinds, ",") != strings.Join(want, ",") {
		t.Errorf("%q, want %q", kinds, want)
	}
	if kinds, _ := batch(t, url, lines[:1], "Authorization", "Bearer ops-secret"); kinds[0] != httpapi.Forbidden {
		t.Errorf("without the right to lock: %q", kinds)
	}
	if kinds, _ := batch(t, url, lines[:1]); kinds[0] != httpapi.Unauthorized {
		t.Errorf("without a token: %q", kinds)
	}
	if kinds, _ := batch(t, url, lines[:1], "Authorization", "Bearer ci-secret", "Origin", "https://evil.example"); kinds[0] != httpapi.CrossSite {
		t.Errorf("from another site: %q", kinds)
	}
	many := make([]m, 50)
	for i := range many {
		many[i] = m{"do": "acquire", "name": fmt.Sprintf("ci/many%d", i), "owner": owner}
	}
	kinds, _ = batch(t, url, many, "Authorization", "Bearer limited-secret")
	if n := strings.Count(strings.Join(kinds, " "), httpapi.TooMany); n < 40 {
		t.Errorf("%d of 50 calls are too many for 3 in a second: %q", n, kinds)
	}
	if all, err := s.Store.List(t.Context(), ""); err != nil || len(all) > 12 {
		t.Errorf("%d locks, %v", len(all), err)
	}
	url, _ = start(t, serve.Options{ReadOnly: true})
	if kinds, _ := batch(t, url, lines[:1]); kinds[0] != httpapi.Forbidden {
		t.Errorf("at a read-only server: %q", kinds)
	}
}

// stalls is a store that does not answer about some locks.
type stalls struct {
	store.Engine
	under atomic.Int64
}

// Caps says that the store is not in this process, since it can keep its callers waiting.
func (s *stalls) Caps() store.Caps {
	c := s.Engine.Caps()
	c.Reach = "machine"
	return c
}

func (s *stalls) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if strings.HasPrefix(r.Name, "stall") {
		s.under.Add(1)
		<-ctx.Done()
		return store.Grant{}, ctx.Err()
	}
	return s.Engine.Acquire(ctx, r)
}

// panics is a store that panics about some locks.
type panics struct{ store.Engine }

func (s panics) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if r.Name == "bug" {
		panic("a bug of the store")
	}
	return s.Engine.Acquire(ctx, r)
}

// A call that panics is answered with a problem, and logged with its stack. The other calls of the
// batch are answered as always.
func TestBatchOutlivesPanics(t *testing.T) {
	st := store.New(panics{memstore.New(nil).Engine()})
	t.Cleanup(func() { st.Close() })
	log := &logged{}
	url, _ := start(t, serve.Options{Store: st, Log: slog.New(slog.NewJSONHandler(log, nil))})
	kinds, _ := batch(t, url, []m{
		{"do": "acquire", "name": "bug", "owner": store.NewOwner()},
		{"do": "acquire", "name": "fine", "owner": store.NewOwner()},
	})
	if kinds[0] != httpapi.Internal || kinds[1] != "" {
		t.Errorf("%q, want a problem and a grant", kinds)
	}
	if text := log.String(); !strings.Contains(text, "a bug of the store") || !strings.Contains(text, "panics.Acquire") {
		t.Errorf("the log has neither the panic nor its stack: %s", text)
	}
}

// counting counts the requests that it sends.
type counting struct {
	http.Transport
	alone, batches atomic.Int64
	version        atomic.Int64 // of HTTP, in the last answer
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/v1/batch") {
		c.batches.Add(1)
	} else {
		c.alone.Add(1)
	}
	resp, err := c.Transport.RoundTrip(r)
	if err == nil {
		c.version.Store(int64(resp.ProtoMajor))
	}
	return resp, err
}

// Goroutines that ask at the same moment share requests, and those that are not answered hold up
// no others.
func TestGathering(t *testing.T) {
	t.Run("HTTP 1", func(t *testing.T) { testGathering(t, "", 1) })
	t.Run("HTTP 2, below a prefix", func(t *testing.T) { testGathering(t, "/locks", 2) })
}

func testGathering(t *testing.T, prefix string, version int64) {
	slow := &stalls{Engine: memstore.New(nil).Engine()}
	st := store.New(slow)
	t.Cleanup(func() { st.Close() })
	url, _ := start(t, serve.Options{Store: st, Prefix: prefix})
	sent := &counting{Transport: http.Transport{MaxIdleConnsPerHost: 64, Protocols: &http.Protocols{}}}
	sent.Protocols.SetHTTP1(version == 1)
	sent.Protocols.SetUnencryptedHTTP2(version == 2)
	over := remote(t, url+prefix, sent)
	pair := func(name string) {
		l := store.Lease{Name: name, Owner: store.NewOwner(), TTL: time.Minute}
		if _, err := over.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
			t.Error(err)
		} else if err := over.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Error(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stalled, group sync.WaitGroup
	defer stalled.Wait()
	defer stop()
	for i := range 8 { // four requests of their own, and some in batches
		stalled.Go(func() {
			over.Acquire(ctx, store.AcquireRequest{Lease: store.Lease{Name: fmt.Sprintf("stall%d", i), Owner: store.NewOwner(), TTL: time.Minute}})
		})
	}
	eventually.True(t, "calls are not answered", func() bool { return slow.under.Load() == 8 })
	before := sent.alone.Load()
	for i := range 64 {
		group.Go(func() {
			for range 20 {
				pair(fmt.Sprintf("a%d", i))
			}
		})
	}
	group.Wait()
	const calls = 64 * 20 * 2
	if n := sent.batches.Load(); n == 0 || n > calls/4 || sent.alone.Load() > before {
		t.Errorf("%d batches, and %d requests of one call, for %d calls", n, sent.alone.Load()-before, calls)
	}
	if got := sent.version.Load(); got != version {
		t.Errorf("HTTP %d, want %d", got, version)
	}
}

// An answer may be long, since it has what the holder says of itself. It is no fault of the
// connection.
func TestGatheringOfLongAnswers(t *testing.T) {
	slow := &stalls{Engine: memstore.New(nil).Engine()}
	st := store.New(slow)
	t.Cleanup(func() { st.Close() })
	url, _ := start(t, serve.Options{Store: st})
	sent := &counting{Transport: http.Transport{MaxIdleConnsPerHost: 64}}
	over := remote(t, url, sent)
	meta := store.Holder{Host: "h", Purpose: strings.Repeat("long ", 800)}.Encode()
	if _, err := over.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: "taken", Owner: store.NewOwner(), Meta: meta, TTL: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var stalled sync.WaitGroup
	defer stalled.Wait()
	defer stop()
	for i := range 4 {
		stalled.Go(func() {
			over.Acquire(ctx, store.AcquireRequest{Lease: store.Lease{Name: fmt.Sprintf("stall%d", i), Owner: store.NewOwner(), TTL: time.Minute}})
		})
	}
	eventually.True(t, "calls are not answered", func() bool { return slow.under.Load() == 4 })
	_, err := over.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: "taken", Owner: store.NewOwner(), TTL: time.Minute}})
	if busy, ok := errors.AsType[*store.BusyError](err); !ok || len(busy.Holder.Purpose) != 4000 {
		t.Errorf("%v, want that another owner holds the lock", err)
	}
	if n := sent.batches.Load(); n != 1 {
		t.Errorf("%d batches, want 1", n)
	}
}
