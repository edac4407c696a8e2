package lockview

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/store"
)

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
		if err := WriteJSON(&b, JSON(c.state)); err != nil {
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
	if err := WriteState(&b, states[3], false, now); err != nil {
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
		if err := WriteState(&b, s, false, now); err != nil {
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
	if err := WriteState(&b, states[1], false, now); err != nil || strings.Contains(b.String(), "pid") || strings.Contains(b.String(), "unless renewed") || !strings.Contains(b.String(), "kind     mutex\n") {
		t.Errorf("%v, %s, want neither a process nor a renewal", err, b.String())
	}
}

// JSON has no character that a terminal could act on, and says what it said.
func TestJSONIsSafeOnATerminal(t *testing.T) {
	hostile := "a\x7f\u009b31m\u202e\u2066\u200f\u2028\x1b[2J\U000e0041ü<&>\u00a0\t\n"
	for _, write := range []func(w *bytes.Buffer) error{
		func(w *bytes.Buffer) error { return WriteJSON(w, map[string]string{"name": hostile}) },
		func(w *bytes.Buffer) error { return WriteJSONLine(w, map[string]string{"name": hostile}) },
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
	if said := voice.Safe("x\u202ey\u009bz"); said != "x?y?z" {
		t.Errorf("a message has %q, want no character that a terminal could act on", said)
	}
}

// writeTable writes the table of "ls".
func writeTable(b *strings.Builder, states []store.State, now time.Time) error {
	b.WriteString(List{States: states}.Table(now))
	return nil
}
