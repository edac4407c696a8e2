// Package browser drives a headless Chromium in tests. It speaks the small part of the WebDriver
// protocol that they need to chromedriver, which Debian packages beside Chromium. A library for
// Chromium's own protocol would bring a generated module that takes longer to compile than the
// tests take to run.
package browser

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
)

// patience bounds each command, on a loaded machine, too.
const patience = 90 * time.Second

// Driver is a chromedriver, which starts browsers.
type Driver struct {
	url    string
	client *http.Client
}

// Start starts a chromedriver that ends with the test. The test fails if there is none.
func Start(t testing.TB) *Driver {
	t.Helper()
	for _, program := range []string{"chromedriver", "chromium"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: scripts/ensure-chromium.sh installs it", err)
		}
	}
	cmd := exec.Command("chromedriver", "--port=0")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = in
	p, err := child.Start(cmd)
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	d := &Driver{client: &http.Client{Timeout: patience, Transport: &http.Transport{}}}
	read := make(chan struct{})
	t.Cleanup(func() {
		d.client.CloseIdleConnections()
		p.End()
		<-read
		out.Close()
	})
	port := make(chan string, 1)
	go func() {
		defer close(read)
		started := regexp.MustCompile(`started successfully on port (\d+)`)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := started.FindStringSubmatch(lines.Text()); m != nil {
				port <- m[1]
				break
			}
		}
		io.Copy(io.Discard, out)
	}()
	select {
	case n := <-port:
		d.url = "http://127.0.0.1:" + n
	case <-time.After(patience):
		t.Fatal("chromedriver did not say its port")
	}
	return d
}

// Screen is what a Window is shown on.
type Screen struct {
	Width, Height int
	// Phone has the browser pretend to be that of a phone.
	Phone bool
	// Dark prefers dark colours.
	Dark bool
}

// Desk is the screen of a Window at first.
var Desk = Screen{Width: 1280, Height: 800}

// Window is a window of a browser of its own. Its methods end the test if they fail.
type Window struct {
	t    testing.TB
	d    *Driver
	path string // of the session
}

// Open opens a window, which is closed when the test ends. Without scripts it runs none of a page.
func (d *Driver) Open(t testing.TB, scripts bool) *Window {
	t.Helper()
	options := map[string]any{
		// Without a sandbox, root can run it. It ends when chromedriver does, by the pipe.
		"args": []string{"--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking", "--no-first-run", "--hide-scrollbars", "--lang=en-GB"},
	}
	if !scripts {
		options["prefs"] = map[string]any{"profile.managed_default_content_settings.javascript": 2}
	}
	w := &Window{t: t, d: d}
	var session struct {
		ID string `json:"sessionId"`
	}
	w.do("POST", "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": map[string]string{"browser": "ALL"},
	}}}, &session)
	w.path = "/session/" + session.ID
	t.Cleanup(func() { w.send("DELETE", w.path, nil, nil) })
	w.Show(Desk)
	return w
}

// For returns the window with another test, which its methods end.
func (w *Window) For(t testing.TB) *Window { return &Window{t, w.d, w.path} }

// Show has the window shown on another screen.
func (w *Window) Show(s Screen) {
	w.t.Helper()
	w.devtools("Emulation.setDeviceMetricsOverride", map[string]any{"width": s.Width, "height": s.Height, "deviceScaleFactor": 1, "mobile": s.Phone})
	scheme := "light"
	if s.Dark {
		scheme = "dark"
	}
	w.devtools("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]string{"name": "prefers-color-scheme", "value": scheme}}})
}

// send sends a command. out may be nil.
func (w *Window) send(method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequest(method, w.d.url+path, body)
	if err != nil {
		return err
	}
	answer, err := w.d.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var value struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&value); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		var failed struct{ Error, Message string }
		json.Unmarshal(value.Value, &failed)
		return errors.New(failed.Error + ": " + failed.Message)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(value.Value, out)
}

func (w *Window) do(method, path string, in, out any) {
	w.t.Helper()
	if err := w.send(method, path, in, out); err != nil {
		w.t.Fatalf("browser: %s %s: %v", method, path, err)
	}
}

func (w *Window) devtools(command string, params any) {
	w.t.Helper()
	w.do("POST", w.path+"/goog/cdp/execute", map[string]any{"cmd": command, "params": params}, nil)
}

// Go loads the page at url.
func (w *Window) Go(url string) {
	w.t.Helper()
	w.do("POST", w.path+"/url", map[string]any{"url": url}, nil)
}

// URL returns the address of the page that is shown.
func (w *Window) URL() (url string) {
	w.t.Helper()
	w.do("GET", w.path+"/url", nil, &url)
	return url
}

// await is element for one that may not be there yet, since the page is still loading.
func (w *Window) await(selector string) string {
	w.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		e, err := w.element(selector)
		if err == nil {
			return e
		}
		if time.Now().After(end) {
			w.t.Fatalf("browser: %s: %v", selector, err)
		}
	}
}

// element returns the path of the first element that the CSS selector finds.
func (w *Window) element(selector string) (string, error) {
	var found map[string]string
	err := w.send("POST", w.path+"/element", map[string]any{"using": "css selector", "value": selector}, &found)
	for _, id := range found {
		return w.path + "/element/" + id, err
	}
	return "", err
}

// Click clicks on the first element that the CSS selector finds.
func (w *Window) Click(selector string) {
	w.t.Helper()
	e := w.await(selector)
	w.do("POST", e+"/click", map[string]any{}, nil)
}

// Type types text into the first element that the CSS selector finds.
func (w *Window) Type(selector, text string) {
	w.t.Helper()
	e := w.await(selector)
	w.do("POST", e+"/value", map[string]any{"text": text}, nil)
}

// Press presses keys where the focus is.
func (w *Window) Press(keys string) {
	w.t.Helper()
	var actions []map[string]string
	for _, k := range keys {
		actions = append(actions, map[string]string{"type": "keyDown", "value": string(k)}, map[string]string{"type": "keyUp", "value": string(k)})
	}
	w.do("POST", w.path+"/actions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "keyboard", "actions": actions}}}, nil)
}

// Text returns the text that the first element shows that the CSS selector finds, or "" if there
// is none.
func (w *Window) Text(selector string) (text string) {
	w.t.Helper()
	e, err := w.element(selector)
	if err != nil {
		return ""
	}
	if err := w.send("GET", e+"/text", nil, &text); err != nil {
		return "" // it was replaced meanwhile
	}
	return text
}

// Eval runs the body of a function in the page, and decodes what that returns into out, which
// may be nil.
func (w *Window) Eval(out any, body string, args ...any) {
	w.t.Helper()
	if args == nil {
		args = []any{}
	}
	w.do("POST", w.path+"/execute/sync", map[string]any{"script": body, "args": args}, out)
}

// Picture returns what the window shows, as PNG.
func (w *Window) Picture() []byte {
	w.t.Helper()
	var text string
	w.do("GET", w.path+"/screenshot", nil, &text)
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// Complaints returns what the browser has written to its console since the last call: errors of
// scripts, what could not be loaded, and what the policy of the page has blocked.
func (w *Window) Complaints() (list []string) {
	w.t.Helper()
	var entries []struct{ Level, Message string }
	w.do("POST", w.path+"/se/log", map[string]any{"type": "browser"}, &entries)
	for _, e := range entries {
		list = append(list, e.Level+": "+e.Message)
	}
	return list
}
