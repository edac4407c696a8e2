package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/observe"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
)

// Each answer forbids everything that the page does not do itself.
func TestProtection(t *testing.T) {
	t.Parallel()
	s := newStage(t, memory(t), "")
	for _, path := range []string{"/", "/lock?name=a", "/events", "/health", "/nowhere", "/page.css", "/page.js", "/icon.svg", "/break"} {
		status, body := s.get(path)
		policy := s.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") || s.header.Get("X-Frame-Options") != "DENY" || s.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, s.header)
		}
		if want := map[string]int{"/nowhere": 404, "/break": 405}[path]; want != 0 && status != want || want == 0 && status != 200 {
			t.Errorf("%s: status %d", path, status)
		}
		if strings.Contains(s.header.Get("Content-Type"), "html") && regexp.MustCompile(`(?i)<[^>]*\s(style|on[a-z]+)=|<style|<script>`).MatchString(body) {
			t.Errorf("%s has something inline, which the policy forbids", path)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		if status, _ := s.do(method, "/", "", nil); status != http.StatusMethodNotAllowed {
			t.Errorf("%s: status %d", method, status)
		}
	}
}

// A form that breaks a lease counts only if a page of this server sent it.
func TestCrossSiteBreakIsRefused(t *testing.T) {
	t.Parallel()
	st := memory(t)
	s := newStage(t, st, "")
	_, g := s.hold("a", holder("h", 1, "", 0), time.Minute, store.Kind{}, 0)
	path, form := "/break?"+query("name", "a", "token", g.Token.String()), query("reason", "r", "confirm", "yes", "now", "1")
	host := strings.TrimPrefix(s.url, "http://")
	for _, header := range [][]string{
		nil,
		{"Origin", "null"},
		{"Origin", "https://evil.example"},
		{"Origin", "http://" + host + ".evil.example"},
		{"Origin", "http://evil.example@" + host + "x"},
		{"Origin", "not a url %%"},
		{"Sec-Fetch-Site", "same-origin"},
		{"Origin", s.url, "Sec-Fetch-Site", "cross-site"},
		{"Origin", s.url, "Sec-Fetch-Site", "same-site"},
		{"Origin", s.url, "Sec-Fetch-Site", "none"},
		{"Referer", s.url + "/lock?name=a"},
	} {
		if status, _ := s.do("POST", path, form, header); status != http.StatusForbidden {
			t.Errorf("%q: status %d", header, status)
		}
	}
	if state, _ := st.Inspect(t.Context(), "a"); !state.Held || state.Broken != nil {
		t.Fatalf("the lease was broken: %+v", state)
	}
	if status, body := s.do("POST", path, form, []string{"Origin", s.url}); status != http.StatusSeeOther {
		t.Errorf("from its own page: status %d: %s", status, body)
	}
	if state, _ := st.Inspect(t.Context(), "a"); state.Held || state.Broken == nil || !strings.HasPrefix(state.Broken.By, "somebody at 127.0.0.1:") {
		t.Errorf("got %+v", state)
	}
}

// Breaking asks for a reason and for confirmation. It breaks the lease that was seen, and no
// other one, and needs the right to it.
func TestBreak(t *testing.T) {
	t.Parallel()
	st := memory(t)
	s := newStage(t, st, "")
	name := "a b/'\"<&\xff"
	_, g := s.hold(name, holder("h", 1, "p", 0), time.Minute, store.Kind{}, 0)
	own := []string{"Origin", s.url, "Sec-Fetch-Site", "same-origin"}
	post := func(token, form string) (int, string) {
		return s.do("POST", "/break?"+query("name", name, "token", token), form, own)
	}
	for _, c := range []struct {
		token, form string
		want        int
		says        string
	}{
		{"", "reason=r", 400, "no token"},
		{"x", "reason=r", 400, "no token"},
		{"0", "reason=r", 400, "no token"},
		{g.Token.String(), "reason=", 400, "Give a reason"},
		{g.Token.String(), query("reason", strings.Repeat("x", 1025)), 400, "1024 bytes"},
		{g.Token.String(), query("reason", strings.Repeat("x", 1<<17)), 400, "cannot be read"},
		{"77", "reason=r", 409, "no lease of this lock has token 77"},
		{"77", "reason=r&confirm=yes", 409, "Nothing was broken"},
		{g.Token.String(), "reason=it+hangs", 200, "Break this lease?"},
	} {
		if status, body := post(c.token, c.form); status != c.want || !strings.Contains(body, c.says) {
			t.Errorf("token %q, form %.40q: status %d, want %d and %q in %s", c.token, c.form, status, c.want, c.says, body)
		}
	}
	if state, _ := st.Inspect(t.Context(), name); state.Holder.Broken {
		t.Fatal("it was broken before it was confirmed")
	}

	s.client = rights.Anyone(true)
	if status, body := post(g.Token.String(), "reason=r&confirm=yes"); status != 403 || !strings.Contains(body, "may not break") {
		t.Errorf("without the right: status %d: %s", status, body)
	}
	if _, body := s.get("/lock?" + query("name", name)); strings.Contains(body, "<form method=\"post\"") || !strings.Contains(body, "may not break leases") {
		t.Errorf("without the right, the form is shown: %s", body)
	}
	s.client = rights.Anyone(false)

	status, _ := post(g.Token.String(), "reason=it+hangs&by=alice&confirm=yes")
	if to := s.header.Get("Location"); status != 303 || to != link(name)+"&did=broken" {
		t.Errorf("status %d, to %s", status, to)
	}
	state, _ := st.Inspect(t.Context(), name)
	if !state.Holder.Broken || state.Broken == nil || state.Broken.By != "alice" || state.Broken.Reason != "it hangs" {
		t.Errorf("got %+v", state)
	}
	eventually.True(t, "the page says that the lease is broken", func() bool {
		_, body := s.get("/" + link(name) + "&did=broken")
		return strings.Contains(body, "The lease is broken") && strings.Contains(body, ">broken</span>") && strings.Contains(body, "it hangs")
	})
}

// hostile are names and purposes that would like to be more than text.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'-alert(1)-'`, `</title><h1>owned</h1>`, "javascript:alert(1)", "{{.}}", `\u003cscript\u003e`,
	"abc\u202edcba", "\u2066isolate", "zero\u200bwidth", "a\nb\r\nSet-Cookie: x=y", "\x1b[2J\x00", "\xff\xfe", "../../etc/passwd", "a%2fb", "a/b", "?name=x#y", "-rf", "$(touch /tmp/owned)", "`id`", "a'b\\", strings.Repeat("W", 1024), strings.Repeat("é", 512), "کلید", "🔒",
}

// Whatever others write into names and descriptions stays text, in each view.
func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	st := memory(t)
	s := newStage(t, st, "")
	for i, text := range hostile {
		h := store.Holder{Host: text, PID: -1, Purpose: text, Since: time.Now().Add(time.Hour)}
		l := store.Lease{Name: text, Owner: store.NewOwner(), TTL: time.Minute, Meta: h.Encode()}
		if _, err := st.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			s.wait(text, h, time.Minute, store.Kind{}, 0)
		}
	}
	tags := regexp.MustCompile(`(?i)<(script|img|h1|/title)[^>]*>`)
	_, clean := s.get("/events")
	want := len(tags.FindAllString(clean, -1))
	paths := []string{"/", "/?sort=waiting", "/events", "/health"}
	for _, text := range hostile {
		paths = append(paths, "/lock?"+query("name", text), "/?"+query("prefix", text), "/events?"+query("prefix", text, "only", text), "/lock?"+query("name", text, "did", text), "/?"+query("sort", text, "page", text, "refresh", text))
	}
	for _, path := range paths {
		status, body := s.get(path)
		if status != 200 {
			t.Errorf("%s: status %d", path, status)
		}
		if got := len(tags.FindAllString(body, -1)); got != want {
			t.Errorf("%s: %d tags, want %d: %q", path, got, want, tags.FindAllString(body, -1))
		}
		if i := strings.IndexFunc(body, func(r rune) bool {
			return r < ' ' && r != '\n' && r != '\t' || r == '\u202e' || r == '\u2066' || r == '\u200b'
		}); i >= 0 && !strings.Contains(path, "prefix=") {
			t.Errorf("%s shows a character that does something: %q", path, body[max(0, i-60):min(len(body), i+20)])
		}
	}
	for _, text := range hostile { // the link of each lock leads to it
		_, body := s.get("/" + link(text))
		if strings.Contains(body, "Nobody holds it") || !strings.Contains(body, "Break this lease") {
			t.Errorf("%q is not found by its link", text)
		}
	}
}

// shouting is a store with one foreign lock, whose name and owner are far longer than any of ours.
type shouting struct{ store.Engine }

func (s shouting) state() store.State {
	long := strings.Repeat("<b>\u202e", 16<<10)
	return store.State{Name: long, Held: true, Holder: store.Holder{Owner: long, Foreign: true, Host: long, Purpose: long, Trace: long}, ExpiresIn: -1,
		Queue:  []store.Place{{Holder: store.Holder{Owner: long, Host: long, Purpose: long}}},
		Broken: &store.Broken{By: long, Reason: long, Owner: long}, Nodes: []store.NodeOutcome{{Node: long, Outcome: store.Refused, Err: fmt.Errorf("%s", long)}}}
}
func (s shouting) List(context.Context, string) ([]store.State, error) {
	return []store.State{s.state()}, nil
}
func (s shouting) Inspect(context.Context, string) (store.State, error) { return s.state(), nil }

// Text of 64 KB does not fill the page.
func TestLongText(t *testing.T) {
	t.Parallel()
	s := newStage(t, store.New(shouting{memory(t)}), "")
	for _, path := range []string{"/", "/lock?name=x", "/events", "/health"} {
		status, body := s.get(path)
		if status != 200 || len(body) > 200<<10 || strings.Contains(body, "<b>") || strings.Contains(body, "\u202e") {
			t.Errorf("%s: status %d, %d bytes", path, status, len(body))
		}
	}
}

// What a view shows can be done with the commands under it: each word of them is quoted so that
// a shell reads what was meant.
func TestQuote(t *testing.T) {
	texts := append([]string{"", "plain", "a b", "''", "'", "$'x'", "a\n"}, hostile...)
	for range 200 {
		b := make([]byte, rand.IntN(20)+1)
		for i := range b {
			b[i] = byte(rand.IntN(255) + 1)
		}
		texts = append(texts, string(b))
	}
	var script bytes.Buffer
	var want []string
	for _, text := range texts {
		if strings.Contains(text, "\x00") {
			continue // no argument of a program can have it
		}
		q := quote(text)
		if i := strings.IndexFunc(q, func(r rune) bool { return r < ' ' || r == '\u202e' || r == 0x7f }); i >= 0 {
			t.Errorf("%q: %q does something in a terminal", text, q)
		}
		fmt.Fprintf(&script, "printf '%%s\\0' %s\n", q)
		want = append(want, text)
	}
	cmd := exec.Command("bash")
	cmd.Env = []string{"LC_ALL=C.UTF-8"}
	cmd.Stdin = &script
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if i < len(want) && got != want[i] {
			t.Errorf("%q was quoted as %s, which a shell reads as %q", want[i], quote(want[i]), got)
		}
	}
}

// The Host of a request cannot put anything into the commands either.
func TestHostileHost(t *testing.T) {
	t.Parallel()
	r, _ := http.NewRequest("GET", "/", nil)
	r.Host = "a'; rm -rf /; '"
	for _, c := range breakCommands(baseURL(r, ""), "-name", "", 7, "it's", true) {
		out, err := exec.Command("bash", "-c", "set -- "+strings.TrimPrefix(c.Text, "curl ")+"; printf '%s|' \"$@\"").Output()
		if err != nil || !strings.Contains(string(out), "a'; rm -rf /; '") {
			t.Errorf("%s: %s, %v", c.Text, out, err)
		}
	}
}

// The list shows a part of ten thousand locks, with the number of all. It is quick, and leads to
// the others.
func TestManyLocks(t *testing.T) {
	t.Parallel()
	st := memory(t)
	s := newStage(t, st, "")
	for i := range 10_000 {
		s.hold(fmt.Sprintf("job/%05d", i), holder("worker", i, "one of many", time.Minute), time.Hour, store.Kind{}, 0)
	}
	var body string
	eventually.True(t, "the page shows all locks", func() bool { // a busy machine needs some seconds to look at them
		_, body = s.get("/")
		return strings.Contains(body, "of 10000")
	})
	if !strings.Contains(body, "1 to 100 of 10000") || strings.Count(body, "<tbody") != 100 || len(body) > 200<<10 {
		t.Errorf("%d locks in %d bytes", strings.Count(body, "<tbody"), len(body))
	}
	for path, want := range map[string]string{
		"/?page=100": "9901 to 10000 of 10000", "/?page=999999999": "9901 to 10000 of 10000", "/?page=-1": "1 to 100 of 10000",
		"/?prefix=job/012": "1 to 100 of 100", "/?prefix=job/01234": "1 to 1 of 1", "/?prefix=x": "none of 10000", "/?sort=held&page=2": "101 to 200 of 10000",
	} {
		if _, body := s.get(path); !strings.Contains(body, want) {
			t.Errorf("%s: %q is missing", path, want)
		}
	}
}

// Below a prefix, all links stay below it, also if a proxy has taken it away.
func TestPrefix(t *testing.T) {
	t.Parallel()
	st := memory(t)
	s := newStage(t, st, "/locks")
	s.hold("a", holder("h", 1, "", 0), time.Minute, store.Kind{}, 0)
	if status, _ := s.get(""); status != http.StatusPermanentRedirect || s.header.Get("Location") != "/locks/" {
		t.Errorf("status %d, to %q", status, s.header.Get("Location"))
	}
	for _, path := range []string{"/", "/lock?name=a", "/events", "/health"} {
		_, body := s.get(path)
		if m := regexp.MustCompile(`(href|src|action)="/[^"]*"`).FindString(body); m != "" {
			t.Errorf("%s: %s leads away from the prefix", path, m)
		}
	}
	if _, body := s.get("/lock?name=a"); !strings.Contains(body, "curl "+s.url+"/v1/locks/a<") {
		t.Errorf("the commands do not have the prefix: %s", body)
	}
}

// deaf is a store that gives no answer any more.
type deaf struct {
	store.Engine
	mu   sync.Mutex
	deaf bool
}

func (d *deaf) wait(ctx context.Context) {
	d.mu.Lock()
	silent := d.deaf
	d.mu.Unlock()
	if silent {
		<-ctx.Done()
	}
}

func (d *deaf) List(ctx context.Context, prefix string) ([]store.State, error) {
	d.wait(ctx)
	return d.Engine.List(ctx, prefix)
}

func (d *deaf) Inspect(ctx context.Context, name string) (store.State, error) {
	d.wait(ctx)
	return d.Engine.Inspect(ctx, name)
}

// While the store hangs, the page answers, and says since when it knows nothing.
func TestStoreHangs(t *testing.T) {
	t.Parallel()
	st := &deaf{Engine: memory(t)}
	s := newStage(t, store.New(st), "")
	s.hold("a", holder("h", 1, "", 0), time.Hour, store.Kind{}, 0)
	s.get("/")
	st.mu.Lock()
	st.deaf = true
	st.mu.Unlock()
	eventually.True(t, "the page says that the store does not answer", func() bool {
		began := time.Now()
		_, body := s.get("/")
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("it took %v", d)
		}
		return strings.Contains(body, "The store does not answer. This was seen") && strings.Contains(body, "lock?name=a")
	})
	if status, body := s.get("/lock?name=a"); status != http.StatusBadGateway || !strings.Contains(body, "The store was asked for the lock") {
		t.Errorf("status %d: %s", status, body)
	}
}

// Two hundred browsers that follow the page are told of a change, and the store is asked as if
// there were one.
func TestManyBrowsers(t *testing.T) {
	t.Parallel()
	st := memory(t)
	s := newStage(t, st, "")
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	told := make(chan struct{}, 1000)
	for range 200 {
		all.Go(func() {
			r, _ := http.NewRequestWithContext(ctx, "GET", s.url+"/live", nil)
			answer, err := s.http.Do(r)
			if err != nil {
				return
			}
			defer answer.Body.Close()
			b := make([]byte, 1024)
			for {
				n, err := answer.Body.Read(b)
				if bytes.Contains(b[:n], []byte("event: look")) {
					select {
					case told <- struct{}{}:
					default:
					}
				}
				if err != nil {
					return
				}
			}
		})
	}
	for range 600 {
		select {
		case <-told:
		case <-time.After(time.Minute):
			t.Fatal("they were not told")
		}
	}
	began := s.page.Observer.Latest()
	v := began
	for v.ID < began.ID+3 {
		v, _ = s.page.Observer.Next(ctx, v.ID)
	}
	if d := v.At.Sub(began.At); d < 2*time.Second {
		t.Errorf("three looks within %v", d)
	}
}

// Too many browsers are turned away, and their room is free again when they have gone.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t, memory(t), "")
	s.page.streams = make(observe.Streams, 1)
	r, _ := http.NewRequest("GET", s.url+"/live", nil)
	first, err := s.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := s.get("/live"); status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
	first.Body.Close()
	eventually.True(t, "its room is free", func() bool { return len(s.page.streams) == 0 })
}

// A client that asks for many addresses, or long ones, is bounded.
func TestManyAddresses(t *testing.T) {
	t.Parallel()
	s := newStage(t, memory(t), "")
	if status, _ := s.get("/?prefix=" + strings.Repeat("x", mostQuery)); status != http.StatusRequestURITooLong {
		t.Errorf("a long address: status %d", status)
	}
	refused := 0
	for i := range 600 {
		status, _ := s.get(fmt.Sprintf("/lock?name=%d", i))
		if status == http.StatusBadGateway {
			refused++
		}
	}
	if n := len(s.page.shown); n > mostShared {
		t.Errorf("%d views are kept", n)
	}
	t.Logf("%d of 600 were refused", refused)
}

// Without the right to look at anything, nothing is shown.
func TestNoRights(t *testing.T) {
	t.Parallel()
	s := newStage(t, memory(t), "")
	s.hold("secret", holder("h", 1, "", 0), time.Minute, store.Kind{}, 0)
	s.client = &rights.Client{}
	for _, path := range []string{"/", "/lock?name=secret", "/events", "/health", "/live"} {
		if status, body := s.get(path); status != http.StatusForbidden || strings.Contains(body, "secret") {
			t.Errorf("%s: status %d: %s", path, status, body)
		}
	}
}

// A client that may look at some locks sees these alone, and nothing of the others or of the store.
func TestSomeRights(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rights.json")
	if err := os.WriteFile(path, []byte(`{"clients": [{"name": "ops", "token_sha256": ["`+fmt.Sprintf("%x", sha256.Sum256([]byte("secret-token-of-ops-0001")))+`"], "rules": [{"prefix": "ops/", "rights": ["look"]}, {"prefix": "ops/mine", "rights": ["look", "break"]}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := rights.Open(path, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequest("GET", "/", nil)
	r.SetBasicAuth("", "secret-token-of-ops-0001")
	st := memory(t)
	s := newStage(t, st, "")
	if s.client = file.Client(r); s.client == nil {
		t.Fatal("the token is unknown")
	}
	for _, name := range []string{"ops/a", "ops/mine", "private/b"} {
		s.hold(name, holder("host-of-"+name, 1, "", 0), time.Minute, store.Kind{}, 0)
	}
	s.get("/")
	for _, name := range []string{"ops/c", "private/d"} {
		s.hold(name, holder("host-of-"+name, 1, "", 0), time.Minute, store.Kind{}, 0)
	}
	eventually.True(t, "the events tell of both", func() bool { return len(s.page.Observer.View(t.Context()).Events) == 2 })
	for path, want := range map[string]int{"/": 200, "/?prefix=private": 200, "/?sort=held": 200, "/events": 200, "/events?prefix=p": 200, "/lock?name=private/b": 403, "/lock?name=private/none": 403, "/lock": 400, "/health": 403, "/lock?name=ops/a": 200} {
		status, body := s.get(path)
		if status != want || strings.Contains(body, "host-of-private") || strings.Contains(body, "<dt>lost<") || strings.Contains(body, "memory-of-one-process") {
			t.Errorf("%s: status %d, want %d: %s", path, status, want, body)
		}
	}
	eventually.True(t, "the list has three locks", func() bool {
		_, body := s.get("/")
		return strings.Contains(body, "1 to 3 of 3") && strings.Contains(body, "<dd>3</dd>")
	})
	own := []string{"Origin", s.url}
	for name, want := range map[string]int{"ops/a": 403, "private/b": 403, "ops/mine": 303} {
		if status, _ := s.do("POST", "/break?"+query("name", name, "token", "1"), "reason=r&confirm=yes&now=1&by=somebody+else", own); status != want {
			t.Errorf("breaking %s: status %d, want %d", name, status, want)
		}
	}
	if state, _ := st.Inspect(t.Context(), "ops/mine"); state.Broken == nil || state.Broken.By != "ops" {
		t.Errorf("broken by %+v, want the name of the client", state.Broken)
	}
}

// An event says what happened in words.
func TestEventText(t *testing.T) {
	h := store.Holding{Holder: store.Holder{Host: "a", PID: 1, Purpose: "x"}, HeldFor: 90 * time.Second}
	from := store.Holding{Holder: store.Holder{Host: "b", PID: 2}}
	for _, c := range []struct {
		e    observe.Event
		want string
	}{
		{observe.Event{Kind: observe.Acquired, Lease: h}, "by a pid 1 (x)"},
		{observe.Event{Kind: observe.HandedOver, Lease: h, From: &from}, "from b pid 2 to a pid 1 (x)"},
		{observe.Event{Kind: observe.Released, Lease: h}, "by a pid 1 (x) after 1m 30s"},
		{observe.Event{Kind: observe.Lost, Cause: observe.CauseExpired, Lease: h}, "by a pid 1 (x) after 1m 30s: its lease ran out, since it was not renewed"},
		{observe.Event{Kind: observe.Lost, Cause: observe.CauseBroken, Lease: h}, "by a pid 1 (x) after 1m 30s: its broken lease is over"},
		{observe.Event{Kind: observe.Broken, Lease: h, Broken: &store.Broken{By: "op", Reason: "hangs"}}, "the lease of a pid 1 (x) was broken by op: hangs"},
	} {
		if got := eventView(c.e).Text; got != c.want {
			t.Errorf("%s: %s, want %s", c.e.Kind, got, c.want)
		}
	}
}
