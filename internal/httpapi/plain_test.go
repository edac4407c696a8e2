package httpapi

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/statejson"
)

func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// ReadPlain reads nothing in another way than encoding/json.
func FuzzPlain(f *testing.F) {
	for _, seed := range []string{
		"\v{}", `{}`, `{"owner":"o","ttl_ms":30000}`, `{"owner": "o", "wait_ms": 0, "keep": true}`, `{"a"}`, `{"owner":"o",}`, `{"owner":"o"}}`, `{"owner":"o"} {}`,
		`{"owner":"a\"b\\c","meta":"{\"host\":\"x\"}"}`, `{"owner":"\u0041"}`, `{"owner":"é"}`, `{"ttl_ms":1e3}`, `{"ttl_ms":-1}`, `{"ttl_ms":007}`, `{"ttl_ms":"1"}`, `{"ttl_ms":null}`,
		`{"owner":"a","owner":"b"}`, `{"Owner":"a"}`, `{"owner":true}`, `{"keep":"true"}`, `{"keep":1}`, `{"pid":4294967296}`, `{"permits":999999999999999999}`, `{"ttl_ms":9999999999999999}`,
		`{"do":"acquire","name":"a/b","owner":"o","ttl_ms":1000,"call":"c","again":2}`, `{"do":"release","name":"a","renewed":true,"undo":false}`,
		`{"line":3,"name":"a","owner":"o","token":9007199254740991,"slot":0,"at_ms":0,"valid_ms":29698}`, `{"line":1}`, `{"line":1,"problem":{"type":"#busy"}}`, `{"line":1,"repeated":true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var q, q2 Request
		if q.ReadPlain(b) {
			if err := strict(b, &q2); err != nil || !reflect.DeepEqual(q, q2) {
				t.Errorf("a request: %s: %+v, want %+v, %v", b, q, q2, err)
			}
		}
		var a, a2 Ask
		if a.ReadPlain(b) {
			if err := strict(b, &a2); err != nil || !reflect.DeepEqual(a, a2) {
				t.Errorf("a line of a batch: %s: %+v, want %+v, %v", b, a, a2, err)
			}
		}
		var r, r2 Reply
		if r.ReadPlain(b) {
			if err := strict(b, &r2); err != nil || !reflect.DeepEqual(r, r2) {
				t.Errorf("an answer: %s: %+v, want %+v, %v", b, r, r2, err)
			}
		}
	})
}

// Lines are read as they were meant, and those of usual requests and grants are plain.
func FuzzLines(f *testing.F) {
	f.Add("acquire", "a/b", "owner", "", `{"host":"x"}`, "call", int64(30e9), uint8(0), int64(7))
	f.Add("release", "é\x00\xff", "o\"", "at\\", "\u2028<", "", int64(1), uint8(255), int64(-1))
	f.Fuzz(func(t *testing.T, do, name, owner, attempt, meta, call string, ttl int64, flags uint8, n int64) {
		d := In(time.Duration(ttl))
		a := Ask{Do: valid(do), NamedRequest: NamedRequest{statejson.NameOf(name), Request{Owner: valid(owner), TTL: &d, Attempt: valid(attempt), Call: valid(call), Renewed: flags&1 != 0, Again: int(flags >> 4)}}}
		if meta = valid(meta); flags&2 != 0 {
			a.Meta = &meta
		}
		a.Name = valid(a.Name)
		line := a.AppendLine(nil)
		var a2, a3 Ask
		if err := strict(line, &a2); err != nil || !reflect.DeepEqual(a, a2) || line[len(line)-1] != '\n' || bytes.Count(line, []byte("\n")) != 1 {
			t.Errorf("%q: %+v, want %+v, %v", line, a2, a, err)
		}
		if a3.ReadPlain(line) && !reflect.DeepEqual(a3, a) {
			t.Errorf("%q: %+v, want %+v", line, a3, a)
		}
		r := Reply{Line: int(flags)}
		if flags&4 != 0 {
			r.Grant = &Grant{LockName: a.LockName, Owner: a.Owner, Slot: n, Slots: a.Call, Valid: Span(max(n, 0) % 1e9), Repeated: flags&8 != 0}
		}
		if flags&16 != 0 {
			r.Problem = New(Busy, a.Owner)
		}
		line = r.AppendLine(nil)
		var r2 Reply
		if err := strict(line, &r2); err != nil || !reflect.DeepEqual(r, r2) || bytes.Count(line, []byte("\n")) != 1 {
			t.Errorf("%q: %+v, want %+v, %v", line, r2, r, err)
		}
	})
}

func valid(s string) string { return string(bytes.ToValidUTF8([]byte(s), nil)) }

func TestUsualLinesArePlain(t *testing.T) {
	ttl, meta := In(30*time.Second), `{"host":"x","pid":1}`
	a := Ask{Do: "acquire", NamedRequest: NamedRequest{statejson.NameOf("a/b"), Request{Owner: "o", TTL: &ttl, Meta: &meta, Call: "c"}}}
	if line := a.AppendLine(nil); !new(Ask).ReadPlain(line) {
		t.Errorf("%s is not read as plain", line)
	}
	r := Reply{Line: 3, Grant: &Grant{LockName: statejson.NameOf("a"), Owner: "o", Token: 1764384000123456, Valid: SpanOf(time.Second)}}
	if line := r.AppendLine(nil); !new(Reply).ReadPlain(line) {
		t.Errorf("%s is not read as plain", line)
	}
	for _, body := range []string{`{"owner":"o","ttl_ms":60000,"wait_ms":5000}`, `{"owner": "o", "purpose": "nightly backup"}`, "{\"owner\":\"o\"}\n"} {
		if !new(Request).ReadPlain([]byte(body)) {
			t.Errorf("%s is not read as plain", body)
		}
	}
}

// Times are the same after their way over the wire, to the nanosecond, and saturate.
func TestMilliseconds(t *testing.T) {
	for _, d := range []time.Duration{0, 1, -1, 999_999, time.Millisecond, 1500 * time.Microsecond, 30 * time.Second, 30*24*time.Hour + 1} {
		b, err := json.Marshal(In(d))
		var m Milliseconds
		if err == nil {
			err = json.Unmarshal(b, &m)
		}
		if err != nil || m.Duration() != d {
			t.Errorf("%d is %s, which is read as %d, %v", d, b, m.Duration(), err)
		}
	}
	for m, want := range map[Milliseconds]time.Duration{1e300: math.MaxInt64, -1e300: math.MinInt64} {
		if got := m.Duration(); got != want {
			t.Errorf("%v is %d, want %d", m, got, want)
		}
	}
}
