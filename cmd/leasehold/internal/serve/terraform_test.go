package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// infoWith is the body that Terraform sends with LOCK and UNLOCK.
func infoWith(id string) string {
	return fmt.Sprintf(`{"ID":%q,"Operation":"OperationTypeApply","Info":"","Who":"ann@laptop","Version":"1.11.4","Created":"2026-11-29T08:00:00Z","Path":""}`, id)
}

// send sends a request as Terraform does.
func send(t testing.TB, method, url, body string, headers ...string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// sends requires the answer to a request to have that status, and returns its body.
func sends(t testing.TB, want int, method, url, body string, headers ...string) string {
	t.Helper()
	status, answer := send(t, method, url, body, headers...)
	if status != want {
		t.Errorf("%s %s %.80s: %d %.300s, want %d", method, url, body, status, answer, want)
	}
	return answer
}

// The second apply learns the holder of the lock. A state is written by the holder of the lock alone.
// Requests that are sent again change nothing.
func TestTerraform(t *testing.T) {
	st := memstore.New(nil)
	t.Cleanup(func() { st.Close() })
	dir := t.TempDir()
	url, _ := start(t, serve.Options{Store: st, TerraformState: dir})
	at := url + "/terraform/state/prod"
	sends(t, 404, "GET", at, "")
	sends(t, 200, "LOCK", at, infoWith("a"))
	sends(t, 200, "LOCK", at, infoWith("a")) // the answer was lost
	var holder struct {
		ID, Who, Operation string
		Created            time.Time
	}
	if err := json.Unmarshal([]byte(sends(t, 423, "LOCK", at, infoWith("b"))), &holder); err != nil || holder.ID != "a" || !strings.Contains(holder.Who, "ann@laptop") || !strings.Contains(holder.Operation, "OperationTypeApply") || holder.Created.UTC().Format(time.RFC3339) != "2026-11-29T08:00:00Z" {
		t.Errorf("the second is told %+v, %v", holder, err)
	}
	sends(t, 200, "POST", at+"?ID=a", `{"serial":1}`)
	sends(t, 409, "POST", at+"?ID=b", `{"serial":9}`)
	sends(t, 400, "POST", at+"?ID=b&ID=a", `{"serial":9}`)
	sends(t, 423, "POST", at, `{"serial":9}`)
	sends(t, 423, "DELETE", at, "")
	sends(t, 400, "POST", at+"?ID=a", "")
	sends(t, 400, "POST", at+"?ID=a", `{"serial":9}`, "Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")
	sends(t, 409, "UNLOCK", at, infoWith("b"))
	if got := sends(t, 200, "GET", at, ""); got != `{"serial":1}` {
		t.Errorf("the state is %s", got)
	}
	sends(t, 200, "UNLOCK", at, infoWith("a"))
	sends(t, 200, "LOCK", at, infoWith("next"))
	sends(t, 200, "UNLOCK", at, infoWith("next"))
	sends(t, 200, "UNLOCK", at, infoWith("a")) // the answer was lost
	sends(t, 409, "LOCK", at, infoWith("a"))   // was stuck on its way
	sends(t, 409, "POST", at+"?ID=a", `{"serial":9}`)
	sends(t, 409, "UNLOCK", at, infoWith("c"))
	sends(t, 200, "POST", at, `{"serial":2}`) // without a lock, while nobody has it
	sends(t, 200, "LOCK", at, infoWith("b"))
	sends(t, 200, "DELETE", at+"?ID=b", "")
	sends(t, 404, "GET", at, "")
	versions, err := filepath.Glob(filepath.Join(dir, "state%2fprod.tfstate.*"))
	if err != nil || len(versions) != 2 {
		t.Errorf("versions %v, %v, want the two that were replaced", versions, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".arriving-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	// A program under leasehold run has the same lock.
	lease, err := leasehold.New(st, nil).Mutex("state/other").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release(t.Context())
	if got := sends(t, 423, "LOCK", url+"/terraform/state/other", infoWith("a")); !strings.Contains(got, lease.Owner()) {
		t.Errorf("beside another program: %s", got)
	}
}

// The lock of a client that died ends, and what the client writes afterwards is refused. A write
// makes the lock last longer.
func TestTerraformLockEnds(t *testing.T) {
	now := &handClock{}
	st := memstore.New(&memstore.Options{Clock: now})
	t.Cleanup(func() { st.Close() })
	advance := func(d time.Duration) { now.ahead.Add(int64(d)) }
	url, _ := start(t, serve.Options{Store: st, TerraformState: t.TempDir()})
	at := url + "/terraform/prod"
	sends(t, 200, "LOCK", at+"?ttl=1h", infoWith("a"))
	advance(50 * time.Minute)
	sends(t, 200, "POST", at+"?ttl=1h&ID=a", "1")
	advance(50 * time.Minute)
	sends(t, 423, "LOCK", at, infoWith("b"))
	advance(11 * time.Minute)
	sends(t, 409, "POST", at+"?ttl=1h&ID=a", "late, while nobody has the lock")
	sends(t, 200, "LOCK", at, infoWith("b"))
	sends(t, 409, "POST", at+"?ttl=1h&ID=a", "late")
	sends(t, 409, "UNLOCK", at, infoWith("a"))
	if got := sends(t, 200, "GET", at, ""); got != "1" {
		t.Errorf("the state is %q", got)
	}
	for _, ttl := range []string{"1", "-1h", "0s", "1h&ttl=2h", "x"} {
		sends(t, 400, "LOCK", at+"?ttl="+ttl, infoWith("c"))
	}
}

// handClock is a clock that a test advances.
type handClock struct{ ahead atomic.Int64 }

func (c *handClock) Now() clock.Instant {
	return clock.Instant(time.Hour) + clock.Instant(c.ahead.Load())
}

// A force-unlock has an empty body or an ID alone. It takes the right to break and is logged.
func TestTerraformForceUnlock(t *testing.T) {
	var log logged
	file, _ := rightsFile(t,
		m{"name": "ci", "token_sha256": []string{hash("ci")}, "rules": []m{{"prefix": "state/", "rights": []string{"lock"}}}},
		m{"name": "ops", "token_sha256": []string{hash("ops")}, "rules": []m{{"prefix": "", "rights": []string{"lock", "break"}}}},
		m{"name": "eye", "token_sha256": []string{hash("eye")}, "rules": []m{{"prefix": "", "rights": []string{"look"}}}})
	url, _ := start(t, serve.Options{Rights: file, Log: slog.New(slog.NewJSONHandler(&log, nil)), TerraformState: t.TempDir()})
	at := url + "/terraform/state/prod"
	r, _ := http.NewRequest("GET", at, nil)
	as := func(token string) []string { // Terraform sends a password
		r.SetBasicAuth("terraform", token)
		return []string{"Authorization", r.Header.Get("Authorization")}
	}
	for _, body := range []string{"", `{"ID":"a","Operation":"","Info":"","Who":"","Version":"","Created":"0001-01-01T00:00:00Z","Path":""}`} {
		log.b.Reset()
		sends(t, 200, "LOCK", at, infoWith("a"), as("ci")...)
		sends(t, 403, "UNLOCK", at, body, as("ci")...)
		sends(t, 200, "POST", at+"?ID=a", "1", as("ci")...)
		sends(t, 200, "UNLOCK", at, body, as("ops")...)
		sends(t, 409, "POST", at+"?ID=a", "2", as("ci")...)
		sends(t, 200, "LOCK", at, infoWith("b"), as("ci")...)
		sends(t, 200, "UNLOCK", at, infoWith("b"), as("ci")...)
		if text := log.String(); !strings.Contains(text, `"reason":"force-unlock"`) || !strings.Contains(text, `"client":"ops"`) {
			t.Errorf("the log: %s", text)
		}
		at += "2"
	}
	sends(t, 401, "LOCK", at, infoWith("c"))
	sends(t, 403, "LOCK", url+"/terraform/mine", infoWith("c"), as("ci")...)
	sends(t, 403, "GET", at, "", as("eye")...) // a state has secrets
}

// No name leads out of the folder, and no two names have one file.
func TestTerraformNames(t *testing.T) {
	dir := t.TempDir()
	url, _ := start(t, serve.Options{TerraformState: filepath.Join(dir, "states")})
	if err := os.Mkdir(filepath.Join(dir, "states"), 0o700); err != nil {
		t.Fatal(err)
	}
	names := []string{"a/b", "a%252fb", "A/b", "%2e%2e/%2e%2e/x", "%2e", "a.tfstate", "a", "a%00", "%ff", strings.Repeat("%2f", 1000), strings.Repeat("%2f", 1001), strings.Repeat("x", 1024)}
	for i, name := range names {
		sends(t, 200, "POST", url+"/terraform/"+name, fmt.Sprint(i))
	}
	for i, name := range names {
		if got := sends(t, 200, "GET", url+"/terraform/"+name, ""); got != fmt.Sprint(i) {
			t.Errorf("the state of %.40s is that of number %s", name, got)
		}
	}
	sends(t, 400, "GET", url+"/terraform/", "")
	sends(t, 405, "PUT", url+"/terraform/a", "x")
	if all, _ := os.ReadDir(dir); len(all) != 1 {
		t.Errorf("%v, want the folder alone", all)
	}
}

// A server without a folder keeps locks, and does not say that a state is missing. Stores that
// cannot keep a lease for hours are refused.
func TestTerraformRefusals(t *testing.T) {
	url, _ := start(t, serve.Options{})
	at := url + "/terraform/a"
	sends(t, 200, "LOCK", at, infoWith("a"))
	for _, method := range []string{"GET", "POST", "DELETE"} {
		if text := sends(t, 422, method, at+"?ID=a", "1"); !strings.Contains(text, "--terraform-state") {
			t.Error(text)
		}
	}
	for _, body := range []string{"", "{}", "[]", "null", `{"ID":7}`, `{"ID":"a b"}`, infoWith(strings.Repeat("x", 1000)), "{" + strings.Repeat(" ", 70_000) + "}"} {
		if status, text := send(t, "LOCK", at, body); status != 400 && status != 413 {
			t.Errorf("LOCK with %.30q: %d %s", body, status, text)
		}
	}
	for _, engine := range []string{"redis", "redis-cluster"} {
		st := store.New(otherEngine{memstore.New(nil).Engine(), engine})
		t.Cleanup(func() { st.Close() })
		url, _ := start(t, serve.Options{Store: st})
		if text := sends(t, 422, "LOCK", url+"/terraform/a", infoWith("a")); !strings.Contains(text, "Redis") {
			t.Errorf("on %s: %s", engine, text)
		}
		if err := (serve.Fleet{Slots: 1, TTL: time.Hour}).Check(st); err == nil || !strings.Contains(err.Error(), "Redis") {
			t.Errorf("FleetLock on %s: %v", engine, err)
		}
	}
}

// otherEngine is an engine with another name.
type otherEngine struct {
	store.Engine
	name string
}

func (e otherEngine) Caps() store.Caps {
	c := e.Engine.Caps()
	c.Engine = e.name
	return c
}

// Only the last versions are kept. A large state arrives whole.
func TestTerraformVersions(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".arriving-7"), []byte("of a server that was killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, _ := start(t, serve.Options{TerraformState: dir})
	large := strings.Repeat("0123456789abcdef", 1<<20)
	for i := range 30 {
		sends(t, 200, "POST", url+"/terraform/a", fmt.Sprint(i))
	}
	sends(t, 200, "POST", url+"/terraform/a", large)
	if got := sends(t, 200, "GET", url+"/terraform/a", ""); got != large {
		t.Errorf("%d bytes came back of %d", len(got), len(large))
	}
	if all, _ := os.ReadDir(dir); len(all) != 21 {
		t.Errorf("%d files, want the state and 20 versions", len(all))
	}
	resp, err := http.Post(url+"/terraform/a", "", io.LimitReader(zeros{}, 257<<20))
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("257 MB: %d", resp.StatusCode)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) != 21 {
		t.Errorf("%d files after a state that is too large", len(all))
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// Applies at once write one after the other: no write of one holder lands after the next
// one has the lock.
func TestTerraformAppliesAtOnce(t *testing.T) {
	url, _ := start(t, serve.Options{TerraformState: t.TempDir()})
	at := url + "/terraform/a"
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 5 {
				id := fmt.Sprintf("%d-%d", i, n)
				for {
					status, text := send(t, "LOCK", at, infoWith(id))
					if status == 200 {
						break
					}
					if status != 423 {
						t.Errorf("LOCK: %d %s", status, text)
						return
					}
					if s, _ := send(t, "POST", at+"?ID="+id, "stolen"); s != 409 {
						t.Errorf("a write without the lock: %d", s)
					}
				}
				before := ""
				if s, text := send(t, "GET", at, ""); s == 200 {
					before = text
				}
				if strings.Contains(before, "stolen") || len(before) > 100_000 {
					t.Errorf("read %.50s", before)
				}
				sends(t, 200, "POST", at+"?ID="+id, before+id+"\n")
				sends(t, 200, "UNLOCK", at, infoWith(id))
			}
		})
	}
	group.Wait()
	if n := strings.Count(sends(t, 200, "GET", at, ""), "\n"); n != 40 {
		t.Errorf("%d writes are in the state, want 40", n)
	}
}

// The real programs, if they are installed: the second of two applies learns the holder of the lock,
// the lock of an apply that was killed ends, a late write of it is refused, and force-unlock works.
func TestTerraformItself(t *testing.T) {
	for _, name := range []string{"terraform", "tofu"} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				t.Skip("not installed; the other tests send the requests that it sends")
			}
			testTerraformItself(t, name)
		})
	}
}

func testTerraformItself(t *testing.T, name string) {
	url, _ := start(t, serve.Options{TerraformState: t.TempDir()})
	at, home := url+"/terraform/prod?ttl=15s", t.TempDir()
	rc := filepath.Join(home, "rc")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(rc, "")
	started, goOn := filepath.Join(home, "started"), filepath.Join(home, "go")
	dir := func() string {
		d := t.TempDir()
		write(filepath.Join(d, "main.tf"), fmt.Sprintf(`terraform {
  backend "http" {
    address        = %[1]q
    lock_address   = %[1]q
    unlock_address = %[1]q
  }
}
resource "terraform_data" "a" {
  provisioner "local-exec" {
    command = "touch %[2]s; while ! test -e %[3]s; do sleep 0.1; done"
  }
}
`, at, started, goOn))
		return d
	}
	var out bytes.Buffer
	command := func(dir string, args ...string) *exec.Cmd {
		c := exec.Command(name, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "HOME="+home, "TF_CLI_CONFIG_FILE="+rc, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
		c.WaitDelay = time.Second
		return c
	}
	run := func(dir string, args ...string) (string, error) {
		b, err := command(dir, args...).CombinedOutput()
		return string(b), err
	}
	a, b := dir(), dir()
	for _, d := range []string{a, b} {
		if text, err := run(d, "init", "-input=false", "-no-color"); err != nil {
			t.Fatalf("init: %v\n%s", err, text)
		}
	}
	first := command(a, "apply", "-auto-approve", "-no-color")
	first.Stdout, first.Stderr = &out, &out
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { write(goOn, "") })
	eventually.True(t, "the first apply works", func() bool { _, err := os.Stat(started); return err == nil })
	var holder struct{ ID string }
	json.Unmarshal([]byte(sends(t, 423, "LOCK", url+"/terraform/prod", infoWith("b"))), &holder)
	id := holder.ID
	text, err := run(b, "apply", "-auto-approve", "-no-color")
	if err == nil || !strings.Contains(text, id) {
		t.Errorf("the second apply: %v, want an error that names the lock %s\n%s", err, id, text)
	}
	first.Process.Kill()
	first.Wait()
	write(goOn, "")
	if text, err := run(b, "apply", "-auto-approve", "-no-color", "-lock-timeout=2m"); err != nil {
		t.Errorf("after the first was killed: %v\n%s", err, text)
	}
	sends(t, 409, "POST", url+"/terraform/prod?ttl=15s&ID="+id, "late")
	if text, err := run(b, "output", "-no-color"); err != nil {
		t.Errorf("the state afterwards: %v\n%s", err, text)
	}
	sends(t, 200, "LOCK", url+"/terraform/prod", infoWith("7d2b2b6e-0000-4000-8000-000000000000"))
	if text, err := run(b, "force-unlock", "-force", "7d2b2b6e-0000-4000-8000-000000000000"); err != nil {
		t.Errorf("force-unlock: %v\n%s", err, text)
	}
	if r := ask(t, "GET", url, "/v1/locks/prod", nil); r.body["held"] != false {
		t.Errorf("after force-unlock: %s", r.text)
	}
	if r := ask(t, "POST", url, "/v1/locks/prod/acquire", m{"owner": "x"}); r.kind == httpapi.Busy {
		t.Errorf("after force-unlock: %s", r.text)
	}
}

// A long name has a file of its own, though a shorter one is made to look like it.
func TestTerraformNamesThatLookAlike(t *testing.T) {
	url, _ := start(t, serve.Options{TerraformState: t.TempDir()})
	long := strings.Repeat("x", 200)
	for sum := hash(long); ; sum = hash(long) { // the first byte of the hash is one that is escaped
		if b, err := strconv.ParseUint(sum[:2], 16, 8); err == nil && b > 127 {
			sends(t, 200, "POST", url+"/terraform/"+long, "long")
			sends(t, 200, "POST", url+"/terraform/"+long[:80]+"%"+sum, "short")
			break
		}
		long += "x"
	}
	if got := sends(t, 200, "GET", url+"/terraform/"+long, ""); got != "long" {
		t.Errorf("the state of the long name is the one of the %s one", got)
	}
}

// An empty state without a length is refused, and a state that cannot be read is neither missing
// nor empty: Terraform would begin with no resources.
func TestTerraformEmptyState(t *testing.T) {
	dir := t.TempDir()
	url, _ := start(t, serve.Options{TerraformState: dir})
	sends(t, 200, "POST", url+"/terraform/a", "1")
	gone := t.TempDir()
	other, _ := start(t, serve.Options{TerraformState: gone})
	sends(t, 404, "GET", other+"/terraform/a", "")
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	sends(t, 502, "GET", other+"/terraform/a", "")
	resp, err := http.Post(url+"/terraform/a", "", io.MultiReader()) // in chunks
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("an empty state: %d", resp.StatusCode)
	}
	if got := sends(t, 200, "GET", url+"/terraform/a", ""); got != "1" {
		t.Errorf("the state is %q", got)
	}
	if err := os.Mkdir(filepath.Join(dir, "b.tfstate"), 0o700); err != nil { // its read fails, as on a broken disk
		t.Fatal(err)
	}
	if resp, err = http.Get(url + "/terraform/b"); err == nil {
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); err == nil && resp.StatusCode == 200 {
			t.Errorf("a state that cannot be read is %q", b)
		}
	}
}

// A write that was overtaken on its way by a later one of the same apply is refused. An older state
// under another ID is accepted: "terraform state push -force" writes one on purpose.
func TestTerraformOvertakenWrite(t *testing.T) {
	url, _ := start(t, serve.Options{TerraformState: t.TempDir()})
	at := url + "/terraform/a"
	state := func(serial int, lineage string) string {
		return fmt.Sprintf(`{"version":4,"terraform_version":"1.11.4","serial":%d,"lineage":%q,"outputs":{"x":{"value":%q}},"resources":[]}`, serial, lineage, strings.Repeat("x", 10_000))
	}
	sends(t, 200, "LOCK", at, infoWith("a"))
	sends(t, 200, "POST", at+"?ID=a", state(1, "l"))
	sends(t, 200, "POST", at+"?ID=a", state(2, "l"))
	sends(t, 409, "POST", at+"?ID=a", state(1, "l"))
	sends(t, 200, "POST", at+"?ID=a", state(2, "l")) // the answer was lost
	if got := sends(t, 200, "GET", at, ""); got != state(2, "l") {
		t.Errorf("the state is %.100s", got)
	}
	sends(t, 200, "POST", at+"?ID=a", state(1, "new"))
	sends(t, 200, "UNLOCK", at, infoWith("a"))
	sends(t, 200, "LOCK", at, infoWith("b"))
	sends(t, 200, "POST", at+"?ID=b", state(0, "new"))
}
