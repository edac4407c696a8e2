package httpguard_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/guard/httpguard"
)

var quiet = slog.New(slog.DiscardHandler)

// answering is a handler that answers as the request asks.
func answering(w http.ResponseWriter, r *http.Request) {
	switch how := r.Method; how {
	case "NOTHING":
	case "BODY":
		io.WriteString(w, "done")
	case "COPY":
		io.Copy(w, strings.NewReader("done"))
	case "FLUSH":
		http.NewResponseController(w).Flush()
	case "PANIC":
		panic(http.ErrAbortHandler)
	case "REFUSE-AND-PANIC":
		w.WriteHeader(401)
		panic(http.ErrAbortHandler)
	case "EARLY-HINTS":
		w.WriteHeader(103)
		w.WriteHeader(401)
	case "WRITE-AFTER":
		w.WriteHeader(401)
		io.WriteString(w, "no")
		w.WriteHeader(200) // which net/http ignores
	default:
		var status int
		fmt.Sscan(how, &status)
		w.WriteHeader(status)
	}
}

// A token counts once the handler has accepted its request. A handler that failed in
// another way than by refusing may have written.
func TestATokenCountsWhenItsRequestIsAccepted(t *testing.T) {
	for how, counts := range map[string]bool{
		"NOTHING": true, "BODY": true, "COPY": true, "FLUSH": true, "200": true, "204": true, "303": true, "101": true,
		"500": true, "503": true, "PANIC": true,
		"400": false, "401": false, "403": false, "404": false, "429": false, "REFUSE-AND-PANIC": false, "EARLY-HINTS": false, "WRITE-AFTER": false,
	} {
		for name, o := range map[string]*httpguard.Options{"alone": nil, "with a memory": {Memory: &memory{}}} {
			h := httpguard.New(http.HandlerFunc(answering), byPath, o)
			func() {
				defer func() { recover() }()
				request(h, t.Context(), how, "9")
			}()
			want := map[bool]int{true: 409, false: 200}[counts]
			if got := request(h, t.Context(), "200", "5").Code; got != want {
				t.Errorf("%s, token 5 after token 9 with %s: %d, want %d", name, how, got, want)
			}
			if o != nil {
				wantHighest := map[bool]fence.Token{true: 9, false: 5}[counts]
				if got, _ := o.Memory.Highest(t.Context(), "/"); got != wantHighest {
					t.Errorf("after %s the memory has token %v, want %v", how, got, wantHighest)
				}
			}
		}
	}
}

// The largest possible token locks nobody out, whether or not the handler accepts it.
func TestATokenCannotLeapFar(t *testing.T) {
	for name, o := range map[string]*httpguard.Options{"alone": {Logger: quiet}, "with a memory": {Logger: quiet, Memory: &memory{}}} {
		for _, how := range []string{"401", "200", "500", "PANIC"} {
			h := httpguard.New(http.HandlerFunc(answering), byPath, o)
			for _, c := range []struct {
				token string
				want  int
			}{{"5", 200}, {"9007199254740991", 400}, {"6", 200}, {fmt.Sprint(time.Now().UnixMicro()), 200}, {"7", 409}} {
				method := "200"
				if c.want == 400 {
					method = how
				}
				if got := request(h, t.Context(), method, c.token).Code; got != c.want {
					t.Errorf("%s: token %s: %d, want %d", name, c.token, got, c.want)
				}
			}
			o.Memory = nil
		}
	}
	synctest.Test(t, func(t *testing.T) {
		now := fence.Token(time.Now().UnixMicro())
		h := httpguard.New(http.HandlerFunc(answering), byPath, &httpguard.Options{Logger: quiet, Leap: 1000})
		for _, c := range []struct {
			token fence.Token
			want  int
		}{{now + 1001, 400}, {now + 1000, 200}, {now + 2001, 400}, {now + 2000, 200}, {now + 1999, 409}} {
			if got := request(h, t.Context(), "200", c.token.String()).Code; got != c.want {
				t.Errorf("token %v at %v: %d, want %d", c.token, now, got, c.want)
			}
		}
	})
}

// A smaller token waits for a larger one that the handler may yet refuse, and is refused
// as soon as the larger one is accepted, even while its handler goes on.
func TestWhileALargerTokenIsNotYetAccepted(t *testing.T) {
	for _, status := range []int{401, 200} {
		synctest.Test(t, func(t *testing.T) {
			decide, goOn := make(chan struct{}), make(chan struct{})
			h := httpguard.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(httpguard.Header) == "9" {
					<-decide
					w.WriteHeader(status)
					<-goOn
				}
			}), byPath, nil)
			code := 0
			go request(h, t.Context(), "PUT", "9")
			synctest.Wait()
			go func() { code = request(h, t.Context(), "PUT", "5").Code }()
			synctest.Wait()
			if code != 0 {
				t.Fatalf("token 5 was answered with %d while 9 runs, want it to wait", code)
			}
			close(decide)
			synctest.Wait()
			if status == 200 && code != 409 || status == 401 && code != 0 {
				t.Errorf("token 5 while 9 runs on after %d: %d, want 409 after 200, and to wait after 401", status, code)
			}
			close(goOn)
			synctest.Wait()
			if status == 401 && code != 200 {
				t.Errorf("token 5 after 9 was refused: %d, want 200", code)
			}
		})
	}
}

// A memory that cannot remember an accepted token is an error of the request, and this
// process refuses older tokens all the same.
func TestAcceptedTokenThatIsNotRemembered(t *testing.T) {
	m := &failing{}
	h := httpguard.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "4")
		_, err := io.WriteString(w, "done")
		if (err != nil) != (m.err != nil) {
			t.Errorf("writing the answer: %v, want an error if the memory fails", err)
		}
	}), byPath, &httpguard.Options{Memory: m, Logger: quiet})
	m.err = errors.New("down")
	if w := request(h, t.Context(), "PUT", "9"); w.Code != 503 || strings.Contains(w.Body.String(), "nothing was done") {
		t.Errorf("the memory is down: %d %s, want 503, and no word that nothing was done", w.Code, w.Body)
	}
	m.err = nil
	if w := request(h, t.Context(), "PUT", "5"); w.Code != 409 {
		t.Errorf("token 5 after 9: %d, want 409", w.Code)
	}
	if w := request(h, t.Context(), "PUT", "9"); w.Code != 200 || w.Body.String() != "done" {
		t.Errorf("token 9 again: %d %s, want 200", w.Code, w.Body)
	}
	// Another process has accepted a later holder while the handler ran.
	m.err = &fence.StaleError{Resource: "/", Offered: 10, Highest: 12}
	if w := request(h, t.Context(), "PUT", "10"); w.Code != 409 || w.Header().Get(httpguard.HighestHeader) != "12" {
		t.Errorf("a later holder wrote meanwhile: %d %v, want 409 and token 12", w.Code, w.Header())
	}
}

// failing is a memory whose Admit fails.
type failing struct {
	memory
	err error
}

func (m *failing) Admit(ctx context.Context, resource string, token fence.Token) error {
	if m.err != nil {
		return m.err
	}
	return m.memory.Admit(ctx, resource, token)
}

// A holder that froze in the middle of an upload, and one that does not read what it asked
// for, keep a later holder out for the grace only.
func TestFrozenHolderIsInterrupted(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		for _, how := range []string{"half an upload", "an answer that is not read"} {
			t.Run(protocol+" "+how, func(t *testing.T) {
				arrived := make(chan struct{})
				s := httptest.NewUnstartedServer(httpguard.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get(httpguard.Header) == "6" {
						return
					}
					close(arrived)
					if how == "half an upload" {
						if _, err := io.ReadAll(r.Body); err != nil {
							http.Error(w, err.Error(), 400)
						}
						return
					}
					for err := error(nil); err == nil; {
						_, err = w.Write(make([]byte, 1<<16))
					}
				}), byPath, &httpguard.Options{Grace: 50 * time.Millisecond, Logger: quiet}))
				s.EnableHTTP2 = protocol == "HTTP/2"
				s.StartTLS()
				t.Cleanup(s.Close)
				client := &http.Client{Transport: &httpguard.Transport{Base: s.Client().Transport}}
				upload, more := io.Pipe()
				defer more.Close()
				var body io.Reader = upload
				if how != "half an upload" {
					body = nil
				}
				r, err := http.NewRequestWithContext(httpguard.WithToken(t.Context(), 5), "PUT", s.URL, body)
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					if resp, err := client.Do(r); err == nil {
						t.Cleanup(func() { resp.Body.Close() })
					}
				}()
				if body != nil {
					io.WriteString(more, "half")
				}
				<-arrived
				ctx, cancel := context.WithTimeout(httpguard.WithToken(t.Context(), 6), patience)
				defer cancel()
				// A frozen writer can need longer than three times this short grace.
				for code := 0; code != 200; {
					r, err := http.NewRequestWithContext(ctx, "PUT", s.URL, nil)
					if err != nil {
						t.Fatal(err)
					}
					resp, err := client.Do(r)
					if err != nil {
						t.Fatalf("the later holder: %v, want it to be served within %v", err, patience)
					}
					resp.Body.Close()
					if code = resp.StatusCode; code != 200 && code != 503 {
						t.Fatalf("the later holder: %d, want 200", code)
					}
				}
			})
		}
	}
}

// The context of an interrupted request ends, and no later one does. A handler that
// ignores that makes later holders try again, and never runs beside them.
func TestInterruptedHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		var ended, running atomic.Int32
		h := httpguard.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if running.Add(1) > 1 {
				t.Error("two handlers run at once")
			}
			defer running.Add(-1)
			if r.Header.Get(httpguard.Header) == "5" {
				<-r.Context().Done()
				ended.Add(1)
				if _, err := r.Body.Read(make([]byte, 1)); err == nil || err == io.EOF {
					t.Errorf("reading an interrupted body: %v, want an error", err)
				}
				<-goOn
			}
			if r.Header.Get(httpguard.Header) == "7" {
				time.Sleep(10 * httpguard.DefaultGrace) // nobody else waits
				if r.Context().Err() != nil {
					t.Errorf("the context of a request that no later one waits for: %v, want no error", r.Context().Err())
				}
			}
		}), byPath, &httpguard.Options{Logger: quiet})
		first := httptest.NewRequestWithContext(t.Context(), "PUT", "/", strings.NewReader("body"))
		first.Header.Set(httpguard.Header, "5")
		go h.ServeHTTP(httptest.NewRecorder(), first)
		synctest.Wait()
		start := time.Now()
		if got := request(h, t.Context(), "PUT", "4").Code; got != 503 || ended.Load() != 0 {
			t.Errorf("an earlier holder: %d, and it interrupted %d, want 503 and 0", got, ended.Load())
		}
		if got := request(h, t.Context(), "PUT", "6").Code; got != 503 || ended.Load() != 1 {
			t.Errorf("a later holder: %d, and it interrupted %d, want 503 and 1", got, ended.Load())
		}
		if waited := time.Since(start); waited != 6*httpguard.DefaultGrace {
			t.Errorf("both waited %v, want three times the grace each", waited)
		}
		close(goOn)
		synctest.Wait()
		for _, token := range []string{"6", "7"} {
			if got := request(h, t.Context(), "PUT", token).Code; got != 200 {
				t.Errorf("token %s: %d, want 200", token, got)
			}
		}
	})
}

// The visit of a hijacked connection, such as a websocket, lasts until the connection is
// closed, and is interrupted like others.
func TestHijackedConnections(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		conns := make(chan net.Conn, 1)
		grace := time.Hour
		if frozen {
			grace = 10 * time.Millisecond
		}
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "GET" {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: chat\r\nConnection: Upgrade\r\n\r\n")
				conns <- conn
			}
		}), &httpguard.Options{Grace: grace})
		client, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		io.WriteString(client, "GET / HTTP/1.1\r\nHost: h\r\nFencing-Token: 5\r\n\r\n")
		if resp, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil || resp.StatusCode != 101 {
			t.Fatalf("%v, %v, want 101", resp, err)
		}
		conn := <-conns
		// Accepting it counts.
		if resp, err := put(t.Context(), url, 4); err != nil || resp.StatusCode != 409 {
			t.Errorf("token 4: %v, %v, want 409", resp, err)
		}
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if resp, err := put(short, url, 6); !frozen && err == nil {
			t.Errorf("token 6 while the connection of 5 is open: %v, want it to wait", resp.Status)
		}
		cancel()
		if frozen {
			conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("reading an interrupted connection: %v, want %v", err, net.ErrClosed)
			}
		} else {
			conn.Close()
		}
		if resp, err := put(t.Context(), url, 6); err != nil || resp.StatusCode != 200 {
			t.Errorf("token 6: %v, %v, want 200", resp, err)
		}
		conn.Close()
	}
}
