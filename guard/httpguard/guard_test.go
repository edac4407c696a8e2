package httpguard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/guard/httpguard"
)

// patience bounds waits for what takes milliseconds on a machine that is not busy.
const patience = 30 * time.Second

func byPath(r *http.Request) string { return r.URL.Path }

func serve(t *testing.T, h http.Handler, o *httpguard.Options) (url string) {
	t.Helper()
	s := httptest.NewServer(httpguard.New(h, byPath, o))
	t.Cleanup(s.Close)
	return s.URL
}

// put sends a write with a token, as a client does.
func put(ctx context.Context, url string, token fence.Token) (*http.Response, error) {
	r, err := http.NewRequestWithContext(httpguard.WithToken(ctx, token), http.MethodPut, url, strings.NewReader("x"))
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &httpguard.Transport{}}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp, err
}

func TestHTTPRefusesOlderTokens(t *testing.T) {
	for name, o := range map[string]*httpguard.Options{"alone": nil, "with a memory": {Memory: &memory{}}} {
		t.Run(name, func(t *testing.T) {
			ran := 0
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ran++
				if token, ok := httpguard.TokenFrom(r.Context()); !ok || token.String() != r.Header.Get(httpguard.Header) {
					t.Errorf("the handler got token %v, %v, want that of the header", token, ok)
				}
			}), o)
			for _, c := range []struct{ offered, highest fence.Token }{{33, 0}, {33, 0}, {35, 0}, {34, 35}, {33, 35}, {35, 0}, {36, 0}} {
				before := ran
				resp, err := put(t.Context(), url+"/a", c.offered)
				if err != nil {
					t.Fatal(err)
				}
				err = httpguard.Check(resp)
				if c.highest == 0 {
					if resp.StatusCode != 200 || err != nil || ran != before+1 {
						t.Errorf("token %v: %s, %v, ran %d times; want 200, no error and once", c.offered, resp.Status, err, ran-before)
					}
					continue
				}
				var stale *fence.StaleError
				if resp.StatusCode != 409 || resp.Header.Get("Fencing-Token-Highest") != c.highest.String() || ran != before {
					t.Errorf("token %v: %s, %v, ran %d times; want 409, not run, and %v as the highest", c.offered, resp.Status, resp.Header, ran-before, c.highest)
				}
				if !errors.As(err, &stale) || stale.Offered != c.offered || stale.Highest != c.highest || stale.Resource != "PUT "+url+"/a" {
					t.Errorf("token %v: Check returned %v, want %v was refused for %v", c.offered, err, c.offered, c.highest)
				}
			}
			if resp, err := put(t.Context(), url+"/another", 1); err != nil || resp.StatusCode != 200 {
				t.Errorf("another resource: %v, %v, want 200", resp, err)
			}
		})
	}
}

func TestRequestsWithoutAToken(t *testing.T) {
	url := serve(t, http.NotFoundHandler(), nil)
	for _, c := range []struct {
		method string
		header []string
		want   int
	}{
		{"GET", nil, 404}, {"HEAD", nil, 404}, {"OPTIONS", nil, 404},
		{"PUT", nil, 428}, {"POST", nil, 428}, {"DELETE", nil, 428}, {"PATCH", nil, 428}, {"MINE", nil, 428},
		{"PUT", []string{""}, 400}, {"PUT", []string{"0"}, 400}, {"PUT", []string{"-1"}, 400}, {"GET", []string{"x"}, 400},
		{"PUT", []string{"7", "7"}, 400}, {"PUT", []string{"7, 8"}, 400}, {"PUT", []string{"9007199254740992"}, 400},
		{"PUT", []string{"7"}, 404}, {"GET", []string{"6"}, 404}, {"PUT", []string{"007"}, 404},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header["Fencing-Token"] = c.header
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %q: %s, want %d", c.method, c.header, resp.Status, c.want)
		}
	}
}

// A larger token waits for the handlers of a smaller one. Handlers with the same token
// run together, unless a larger one waits.
func TestHandlersOfDifferentTokensDoNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		var mu sync.Mutex
		var began []fence.Token
		running := map[fence.Token]int{}
		h := httpguard.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, _ := httpguard.TokenFrom(r.Context())
			mu.Lock()
			began = append(began, token)
			running[token]++
			if len(running) > 1 {
				t.Errorf("handlers of different tokens at once: %v", running)
			}
			mu.Unlock()
			<-goOn
			mu.Lock()
			defer mu.Unlock()
			if running[token]--; running[token] == 0 {
				delete(running, token)
			}
		}), byPath, nil)
		codes := map[string]int{}
		send := func(name, token string) {
			go func() {
				code := request(h, t.Context(), "PUT", token).Code
				mu.Lock()
				defer mu.Unlock()
				codes[name] = code
			}()
			synctest.Wait()
		}
		send("the first", "1")
		send("beside it", "1")
		send("the next holder", "2")
		send("too late", "1")
		if want := []fence.Token{1, 1}; !slices.Equal(began, want) {
			t.Errorf("handlers that run: %v, want %v", began, want)
		}
		close(goOn)
		synctest.Wait()
		if want := []fence.Token{1, 1, 2}; !slices.Equal(began, want) {
			t.Errorf("handlers that ran: %v, want %v", began, want)
		}
		if want := map[string]int{"the first": 200, "beside it": 200, "the next holder": 200, "too late": 409}; !maps.Equal(codes, want) {
			t.Errorf("answers: %v, want %v", codes, want)
		}
	})
}

// request passes a request with a token to h.
func request(h http.Handler, ctx context.Context, method, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, "/", nil)
	r.Header.Set(httpguard.Header, token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWaitingEndsWithTheRequest(t *testing.T) {
	arrived, goOn := make(chan struct{}), make(chan struct{})
	h := httpguard.New(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-goOn
	}), byPath, &httpguard.Options{Logger: slog.New(slog.DiscardHandler)})
	var first sync.WaitGroup
	first.Go(func() { request(h, t.Context(), "PUT", "1") })
	<-arrived
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w := request(h, ctx, "PUT", "2"); w.Code != 503 {
		t.Errorf("a canceled request: %d, want 503", w.Code)
	}
	close(goOn)
	first.Wait()
}

// A handler that panics does not block later requests.
func TestPanicsLeaveTheGateOpen(t *testing.T) {
	h := httpguard.New(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get(httpguard.Header) == "1" {
			panic("on purpose")
		}
	}), byPath, nil)
	for _, token := range []string{"1", "2"} {
		func() {
			defer func() { recover() }()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			r := httptest.NewRequestWithContext(ctx, "PUT", "/", nil)
			r.Header.Set(httpguard.Header, token)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != 200 {
				t.Errorf("token %s: %d, want 200", token, w.Code)
			}
		}()
	}
}

// memory is a Memory in this process, which returns err if it is not nil.
type memory struct {
	mu      sync.Mutex
	highest map[string]fence.Token
	err     error
}

func (m *memory) Highest(_ context.Context, resource string) (fence.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.highest[resource], m.err
}

func (m *memory) Admit(_ context.Context, resource string, token fence.Token) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if m.highest == nil {
		m.highest = map[string]fence.Token{}
	}
	m.highest[resource], err = fence.Admit(resource, m.highest[resource], token)
	return err
}

func TestMemoryIsSharedAndOutlivesTheServer(t *testing.T) {
	m := &memory{}
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	if resp, err := put(t.Context(), serve(t, ok, &httpguard.Options{Memory: m}), 5); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v, want 200", resp, err)
	}
	resp, err := put(t.Context(), serve(t, ok, &httpguard.Options{Memory: m}), 4)
	if err != nil || !errors.Is(httpguard.Check(resp), fence.ErrStale) {
		t.Errorf("%v, %v, want it refused as stale", resp, err)
	}
}

func TestUncheckedRequestsAreNotExecuted(t *testing.T) {
	var log bytes.Buffer
	never := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
	url := serve(t, never, &httpguard.Options{Memory: &memory{err: errors.New("db.internal is down")}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	r, err := http.NewRequestWithContext(httpguard.WithToken(t.Context(), 5), "PUT", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&httpguard.Transport{}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 503 || strings.Contains(string(body), "db.internal") || httpguard.Check(resp) != nil {
		t.Errorf("%s: %s, want 503, without the error of the memory", resp.Status, body)
	}
	if !strings.Contains(log.String(), "db.internal is down") {
		t.Errorf("the log: %s, want text with %q", &log, "db.internal is down")
	}
	// A request without a resource is not executed either.
	w := httptest.NewRecorder()
	nameless := httptest.NewRequest("PUT", "/", nil)
	nameless.Header.Set(httpguard.Header, "5")
	httpguard.New(never, func(*http.Request) string { return "" }, &httpguard.Options{Logger: slog.New(slog.DiscardHandler)}).ServeHTTP(w, nameless)
	if w.Code != 503 {
		t.Errorf("a request without a resource: %d, want 503", w.Code)
	}
}

func TestTransport(t *testing.T) {
	var got []string
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		got = append(got, strings.Join(r.Header.Values(httpguard.Header), ","))
		return nil, errors.New("enough")
	})
	transport := &httpguard.Transport{Base: base}
	send := func(ctx context.Context, header string) (*http.Request, error) {
		r := httptest.NewRequestWithContext(ctx, "PUT", "http://h/", nil)
		if header != "" {
			r.Header.Set(httpguard.Header, header)
		}
		_, err := transport.RoundTrip(r)
		return r, err
	}
	r, _ := send(httpguard.WithToken(t.Context(), 7), "")
	if r.Header.Get(httpguard.Header) != "" {
		t.Error("the caller's request has a token, want it unchanged")
	}
	send(t.Context(), "")
	send(httpguard.WithToken(t.Context(), 7), "8")
	if _, err := send(httpguard.WithToken(t.Context(), 0), ""); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("token 0: %v, want %v", err, fence.ErrInvalid)
	}
	if want := "7||8"; strings.Join(got, "|") != want {
		t.Errorf("sent %q, want %q", strings.Join(got, "|"), want)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestOtherConflictsAreNotRefusals(t *testing.T) {
	for _, resp := range []*http.Response{
		{StatusCode: 409, Header: http.Header{}},
		{StatusCode: 409, Header: http.Header{"Fencing-Token-Highest": {"many"}}},
		{StatusCode: 200, Header: http.Header{"Fencing-Token-Highest": {"7"}}},
	} {
		if err := httpguard.Check(resp); err != nil {
			t.Errorf("%d %v: %v, want no error", resp.StatusCode, resp.Header, err)
		}
	}
}

func Example() {
	store := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := httpguard.TokenFrom(r.Context())
		fmt.Println("stored, with token", token)
	})
	server := httptest.NewServer(httpguard.New(store, func(r *http.Request) string { return r.URL.Path }, nil))
	defer server.Close()

	client := http.Client{Transport: &httpguard.Transport{}}
	write := func(token fence.Token) error { // token: from lease.Token()
		ctx := httpguard.WithToken(context.Background(), token)
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL+"/report", strings.NewReader("figures"))
		if err != nil {
			return err
		}
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return httpguard.Check(resp)
	}
	fmt.Println(write(34))
	fmt.Println(errors.Is(write(33), fence.ErrStale))
	// Output:
	// stored, with token 34
	// <nil>
	// true
}
