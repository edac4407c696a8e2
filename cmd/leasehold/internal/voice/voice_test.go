package voice

import (
	"bufio"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

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
		if got := Safe(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestShown(t *testing.T) {
	for in, want := range map[string]string{
		"deploy/eu": "deploy/eu", "grün": "grün", "": `""`, "a b": `"a b"`, "a\tb": `"a\tb"`,
		"\x1b[31m": `"\x1b[31m"`, "\xff": `"\xff"`, "a\u202eb": `"a\u202eb"`, `a"b`: `"a\"b"`,
	} {
		if got := Shown(in); got != want {
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
	v := New(w)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		for range 10000 { // a pipe takes 64 KiB
			v.Error("%s", strings.Repeat("x", 100))
		}
		v.Flush(time.Millisecond)
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
	log := slog.New(&logHandler{least: slog.LevelWarn, say: func(text string) { lines = append(lines, text) }})
	log.Info("dropped")
	log.With("a", 1).WithGroup("g").With("b", "x y").Warn("kept", "c", time.Second, slog.Group("h", "d", errors.New("e")))
	log.Error("plain")
	want := []string{`warning: kept (a=1 g.b="x y" g.c=1s g.h.d=e)`, "warning: plain"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
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
		{&store.BusyError{Holder: store.Holder{Owner: "o", Host: "h", PID: 7}, ExpiresIn: 12 * time.Second, Undecided: true, Nodes: []store.NodeOutcome{{Node: "c:1", Outcome: store.TimedOut}}}, 0, 0,
			`waiting for "x"; no answer from c:1 (timed out): may be held by h pid 7, expires in 12s unless renewed`},
		{errors.New("no node answers"), 0, 2 * time.Second, `waiting 2s for "x"; no node answers`},
	} {
		w := Waiting{name: "x", began: now, limit: c.limit, reason: reasonOf(c.err, now)}
		if got := w.line(w.name, now.Add(c.after)); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}
