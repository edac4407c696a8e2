package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/screen"
	"github.com/leasehold-dev/leasehold/store"
)

func TestReadURLs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# nodes\n\nredis://u:p@a\r\n  redis://u:q@b  ")
	if got, err := readURLs(path); err != nil || !slices.Equal(got, []string{"redis://u:p@a", "redis://u:q@b"}) {
		t.Errorf("%q, %v, want the two URLs without comments and spaces", got, err)
	}
	write("# nothing\n")
	if _, err := readURLs(path); err == nil {
		t.Error("an empty file: no error, want one")
	}
}

func TestSchemes(t *testing.T) {
	for _, url := range []string{"file", "file:/x", "redis://a", "rediss://a", "memory:"} {
		if _, err := schemeOf([]string{url}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := schemeOf([]string{"redis://a", "rediss://b"}); err != nil {
		t.Error(err)
	}
	for _, urls := range [][]string{{"redis://a", "file:/x"}, {"file:/x", "file:/y"}, {"nope://u:secret@a"}, {"u:secret@a"}, {"secret"}, {"/secret"}, {""}} {
		_, err := schemeOf(urls)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want no %q", urls, err, "secret")
		}
	}
}

func TestSafe(t *testing.T) {
	for in, want := range map[string]string{
		"dial redis://u:p@h:1: no":                                   "dial redis://***@h:1: no",
		"redis://u:p@ss/w0rd@h/0 rediss://":                          "redis://***@h/0 rediss://",
		"as in redis://:PASSWORD@HOST":                               "as in redis://:PASSWORD@HOST",
		"redis://USER:PASSWORD@HOST:PORT,HOST:PORT.../DB?max_ttl=3s": "redis://USER:PASSWORD@HOST:PORT,HOST:PORT.../DB?max_ttl=3s",
		"redis://u:PASSWORD@h redis://:PASSWORD@h":                   "redis://***@h redis://***@h",
		"redis://:PASSWORD@HOSTS redis://USER:PASSWORD@SENTINEL/0":   "redis://***@HOSTS redis://USER:PASSWORD@SENTINEL/0",
		"\x1b[2Jhe\x07llo\n\tx\u0085":                                "?[2Jhe?llo\n\tx?",
	} {
		if got := safe(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestShown(t *testing.T) {
	for in, want := range map[string]string{
		"deploy/eu": "deploy/eu", "grün": "grün", "": `""`, "a b": `"a b"`, "a\tb": `"a\tb"`,
		"\x1b[31m": `"\x1b[31m"`, "\xff": `"\xff"`, "a\u202eb": `"a\u202eb"`, `a"b`: `"a\"b"`,
	} {
		if got := shown(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// A voice does not block its callers if its output is not read.
func TestVoiceDoesNotWait(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	v := newVoice(w)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		for range 10000 { // a pipe takes 64 KiB
			v.error("%s", strings.Repeat("x", 100))
		}
		v.flush(time.Millisecond)
	}()
	select {
	case <-returned:
	case <-time.After(30 * time.Second):
		t.Fatal("the voice still blocks after 30s, want it to drop what is not read")
	}
	if line, err := bufio.NewReader(r).ReadString('\n'); err != nil || !strings.HasPrefix(line, "leasehold: xxx") {
		t.Errorf("the first line is %q, %v, want that of the voice", line, err)
	}
}

func TestLogHandler(t *testing.T) {
	var lines []string
	log := slog.New(&logHandler{least: slog.LevelWarn, say: func(r remark) { lines = append(lines, r.text) }})
	log.Info("dropped")
	log.With("a", 1).WithGroup("g").With("b", "x y").Warn("kept", "c", time.Second, slog.Group("h", "d", errors.New("e")))
	log.Error("plain")
	want := []string{`warning: kept (a=1 g.b="x y" g.c=1s g.h.d=e)`, "warning: plain"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
}

// An error leaves out what a warning has said of a node, also if the node broke a connection first
// and then accepted no other. Another cause is news.
func TestUntold(t *testing.T) {
	few := &store.QuorumError{Op: "acquire", Name: "x", Need: 3, Nodes: []store.NodeOutcome{
		{Node: "a:1", Outcome: store.Unreachable, Err: syscall.ECONNREFUSED},
		{Node: "b:1", Outcome: store.Absent},
		{Node: "c:1", Outcome: store.Refused, Err: errors.New("WRONGPASS")},
	}}
	const summary = `acquire "x": 1 of 3 servers can take part, 3 are needed: `
	for _, c := range []struct{ cause, want string }{
		{"connection refused", summary + "b:1: absent; c:1: WRONGPASS"},
		{"connection reset by peer", summary + "b:1: absent; c:1: WRONGPASS"},
		{"EOF", summary + "b:1: absent; c:1: WRONGPASS"},
		{"no answer within 50ms", summary + "a:1: connection refused; b:1: absent; c:1: WRONGPASS"},
	} {
		v := &voice{}
		v.told("a:1", c.cause)
		if got := v.text(few); got != c.want {
			t.Errorf("after %q: %s\nwant %s", c.cause, got, c.want)
		}
	}
	quiet := &voice{quiet: true}
	quiet.told("a:1", "connection refused")
	if got, want := quiet.text(few), few.Error(); got != want {
		t.Errorf("quiet: %s, want %s", got, want)
	}
}

// replacedData is why a store is in a quarantine that no command ends.
type replacedData struct{}

func (replacedData) Error() string { return "the data was replaced" }
func (replacedData) EndsAlone()    {}

func TestWaitingLine(t *testing.T) {
	now := time.Unix(1e9, 0)
	busy := &store.BusyError{Name: "x", Holder: store.Holder{Owner: "o", Host: "h", PID: 7, Purpose: "job", Since: now.Add(-90 * time.Second)}, ExpiresIn: 20 * time.Second}
	for _, c := range []struct {
		err   error
		limit time.Duration
		after time.Duration
		want  string
	}{
		{busy, 0, 0, `waiting for "x"; held by h pid 7 (job) for 1m30s, expires in 20s unless renewed`},
		{busy, 30 * time.Second, 5 * time.Second, `waiting 5s of 30s for "x"; held by h pid 7 (job) for 1m35s, expires in 15s unless renewed`},
		{&store.BusyError{Holder: store.Holder{Owner: "foreign\x1b"}, ExpiresIn: -1}, 0, 0, `waiting for "x"; held by "foreign\x1b", without an expiry`},
		{&store.BusyError{Holder: store.Holder{Owner: "o", Host: "h", PID: 7, Since: now.Add(time.Hour)}}, 0, 0, `waiting for "x"; held by h pid 7`},
		{&store.BusyError{Holder: store.Holder{Owner: "o"}, ExpiresIn: time.Second, Position: 1}, 0, 0, `waiting for "x", next in the queue; held by o, expires in 1s unless renewed`},
		{&store.BusyError{Holder: store.Holder{Owner: "o"}, ExpiresIn: time.Second, Position: 4}, time.Minute, time.Second, `waiting 1s of 1m for "x", 3 ahead in the queue; held by o, expires in 0s unless renewed`},
		{busy, 300 * time.Millisecond, 0, `waiting up to 300ms for "x"; held by h pid 7 (job) for 1m30s, expires in 20s unless renewed`},
		{&store.BusyError{Holder: store.Holder{Owner: "o", Purpose: "job", Since: now.Add(-time.Hour), Waiting: true}, ExpiresIn: time.Second, Position: 2}, 0, 0, `waiting for "x", 1 ahead in the queue; reserved for o (job), which waits too`},
		{&store.QuorumError{Need: 1, Nodes: []store.NodeOutcome{{Outcome: store.Quarantined, ExpiresIn: time.Minute, Err: replacedData{}}}}, 0, 2 * time.Second, `waiting 2s for "x"; in quarantine (the data was replaced) for 58s`},
		{errors.New("no node answers"), 0, 2 * time.Second, `waiting 2s for "x"; no node answers`},
	} {
		w := waiting{name: "x", began: now, limit: c.limit, reason: reasonOf(&voice{}, c.err, now)}
		if got := w.line(w.name, now.Add(c.after)); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}

func TestJSONContract(t *testing.T) {
	since := time.Date(2026, 5, 6, 7, 8, 9, 0, time.FixedZone("", 3600))
	for _, c := range []struct {
		state store.State
		want  string
	}{
		{store.State{Name: "free"}, `{"name":"free","held":false}`},
		{store.State{Name: "a<b", Held: true, Holder: store.Holder{Owner: "o", Host: "h", PID: 7, Purpose: "p", Since: since}, ExpiresIn: 1500 * time.Millisecond, HeldFor: 2 * time.Second, Token: 9},
			`{"name":"a<b","held":true,"owner":"o","host":"h","pid":7,"purpose":"p","since":"2026-05-06T06:08:09Z","held_for_ms":2000,"expires_in_ms":1500,"token":9,"kind":"mutex"}`},
		{store.State{Name: "f", Held: true, Holder: store.Holder{Owner: "foreign"}, ExpiresIn: -1},
			`{"name":"f","held":true,"owner":"foreign","expires_in_ms":null,"kind":"mutex"}`},
		{store.State{Name: "l", Held: true, Holder: store.Holder{Owner: "o"}, ExpiresIn: time.Second, Queue: []store.Place{
			{Holder: store.Holder{Owner: "p", Host: "h", PID: 7, Purpose: "q", Since: since}, ExpiresIn: 2 * time.Second},
			{Holder: store.Holder{Owner: "r"}},
			{Holder: store.Holder{Owner: "foreign"}, ExpiresIn: -1},
		}},
			`{"name":"l","held":true,"owner":"o","expires_in_ms":1000,"kind":"mutex","queue":[` +
				`{"position":1,"owner":"p","host":"h","pid":7,"purpose":"q","since":"2026-05-06T06:08:09Z","expires_in_ms":2000},` +
				`{"position":2,"owner":"r","expires_in_ms":0},{"position":3,"owner":"foreign","expires_in_ms":null}]}`},
		{store.State{Name: "\xff", Held: true, Holder: store.Holder{Owner: "o"}, ExpiresIn: 0, Nodes: []store.NodeOutcome{
			{Node: "a:1", Outcome: store.Taken, Holder: store.Holder{Owner: "o"}, ExpiresIn: time.Second},
			{Node: "b:1", Outcome: store.Absent},
			{Node: "c:1", Outcome: store.Refused, Err: errors.New("no: redis://u:secret@c")},
		}},
			`{"name":"\ufffd","name_base64":"/w==","held":true,"owner":"o","expires_in_ms":0,"kind":"mutex","nodes":[` +
				`{"node":"a:1","outcome":"taken","owner":"o","expires_in_ms":1000},{"node":"b:1","outcome":"absent"},` +
				`{"node":"c:1","outcome":"refused","error":"no: redis://***@c"}]}`},
	} {
		var b strings.Builder
		if err := writeJSON(&b, toJSON(c.state)); err != nil {
			t.Fatal(err)
		}
		var compact, want any
		if json.Unmarshal([]byte(b.String()), &compact) != nil || json.Unmarshal([]byte(c.want), &want) != nil {
			t.Fatalf("not JSON: %s or %s", b.String(), c.want)
		}
		x, _ := json.Marshal(compact)
		y, _ := json.Marshal(want)
		if string(x) != string(y) {
			t.Errorf("%s\nwant\n%s", x, y)
		}
	}
}

func TestTextOutput(t *testing.T) {
	now := time.Unix(1e9, 0)
	states := []store.State{
		{Name: "a b", Held: true, Holder: store.Holder{Owner: "o", Host: "h", PID: 7, Since: now.Add(-time.Minute)}, ExpiresIn: 20 * time.Second, Token: 12},
		{Name: "waited", Held: true, Holder: store.Holder{Owner: "o", Host: "h", PID: 8, Since: now.Add(-time.Minute)}, HeldFor: 9 * time.Second, ExpiresIn: 20 * time.Second, Token: 13},
		{Name: "foreign", Held: true, Holder: store.Holder{Owner: "x\x1b[2J"}, ExpiresIn: -1},
	}
	var b strings.Builder
	if err := writeTable(&b, states, now); err != nil {
		t.Fatal(err)
	}
	want := "NAME     KIND   HOLDER      HELD FOR  EXPIRES IN  WAITERS  TOKEN\n" +
		"\"a b\"    mutex  h pid 7     1m0s      20s         -        12\n" +
		"waited   mutex  h pid 8     9s        20s         -        13\n" +
		"foreign  mutex  \"x\\x1b[2J\"  -         never       -        -\n"
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	states = append(states, store.State{Name: "l", Held: true, Holder: store.Holder{Owner: "o"}, ExpiresIn: time.Second, Token: 3, Queue: []store.Place{
		{Holder: store.Holder{Owner: "p", Host: "h", PID: 7, Purpose: "q", Since: now.Add(-time.Minute)}, ExpiresIn: 2 * time.Second},
		{Holder: store.Holder{Owner: "r\x1b"}, ExpiresIn: time.Second},
		{Holder: store.Holder{Owner: "foreign"}, ExpiresIn: -1},
	}})
	b.Reset()
	if err := writeState(&b, states[3], false, now); err != nil {
		t.Fatal(err)
	}
	since := now.Add(-time.Minute).Local().Format(time.RFC3339)
	want = "lock     l\n" +
		"kind     mutex\n" +
		"held by  o\n" +
		"owner    o\n" +
		"expires  in 1s unless renewed\n" +
		"token    3\n" +
		"waiting  1. h pid 7 (q), since " + since + " (1m0s ago), place expires in 2s unless refreshed\n" +
		"         2. \"r\\x1b\", place expires in 1s unless refreshed\n" +
		"         3. foreign, place never expires\n"
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	for _, s := range states {
		b.Reset()
		if err := writeState(&b, s, false, now); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsRune(b.String(), 0x1b) {
			t.Errorf("%q has escape sequences, want none", b.String())
		}
	}
}

// A lease that nobody renews is not shown as that of a process: that of a script, and what is
// remembered of a tick.
func TestLeasesWithoutAProcess(t *testing.T) {
	now := time.Date(2026, 11, 29, 14, 30, 0, 0, time.Local)
	of := func(name, purpose string) store.State {
		return store.State{Name: name, Held: true, Holder: store.Holder{Owner: "o", Host: "h", PID: 7, Purpose: purpose, Unrenewed: true, Since: now.Add(-10 * time.Minute)}, ExpiresIn: 50 * time.Minute, Token: 12}
	}
	states := []store.State{of("backup@1h0m0s/3", "tar"), of("deploy", "leasehold acquire"), of("odd@x/3", "")}
	var b strings.Builder
	if err := writeTable(&b, states, now); err != nil {
		t.Fatal(err)
	}
	want := "NAME             KIND   HOLDER                                             HELD FOR  EXPIRES IN  WAITERS  TOKEN\n" +
		"backup@1h0m0s/3  mutex  ran at 14:20:00 on h, remembered until 15:20:00    10m0s     50m0s       -        12\n" +
		"deploy           mutex  h (leasehold acquire), no process renews it        10m0s     50m0s       -        12\n" +
		"odd@x/3          mutex  h, no process renews it                            10m0s     50m0s       -        12\n"
	if strings.Join(strings.Fields(b.String()), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := writeState(&b, states[1], false, now); err != nil || strings.Contains(b.String(), "pid") || strings.Contains(b.String(), "unless renewed") || !strings.Contains(b.String(), "kind     mutex\n") {
		t.Errorf("%v, %s, want neither a process nor a renewal", err, b.String())
	}
}

// JSON has no character that a terminal could act on, and says what it said.
func TestJSONIsSafeOnATerminal(t *testing.T) {
	hostile := "a\x7f\u009b31m\u202e\u2066\u200f\u2028\x1b[2J\U000e0041ü<&>\u00a0\t\n"
	for _, write := range []func(w *bytes.Buffer) error{
		func(w *bytes.Buffer) error { return writeJSON(w, map[string]string{"name": hostile}) },
		func(w *bytes.Buffer) error { return writeJSONLine(w, map[string]string{"name": hostile}) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		for _, r := range b.String() {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%q has %U", b.String(), r)
			}
		}
		var back map[string]string
		if err := json.Unmarshal(b.Bytes(), &back); err != nil || back["name"] != hostile {
			t.Errorf("%q: %q, %v, want %q", b.String(), back["name"], err, hostile)
		}
	}
	if said := safe("x\u202ey\u009bz"); said != "x?y?z" {
		t.Errorf("a message has %q, want no character that a terminal could act on", said)
	}
}

// writeTable writes the table of "ls".
func writeTable(b *strings.Builder, states []store.State, now time.Time) error {
	b.WriteString(screen.Table(listing{states: states}.rows(now)))
	return nil
}
