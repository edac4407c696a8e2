package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func text(kind byte, s string) Value { return Value{Kind: kind, Text: []byte(s)} }
func number(n int64) Value           { return Value{Kind: ':', Num: n} }
func list(v ...Value) Value          { return Value{Kind: '*', List: v} }

var sound = []struct {
	wire string
	want Value
}{
	{"+PONG\r\n", text('+', "PONG")},
	{"+x\r y\r\n", text('+', "x\r y")},
	{"-ERR no\r\n", text('-', "ERR no")},
	{":12\r\n", number(12)},
	{":-2\r\n", number(-2)},
	{":-9223372036854775808\r\n", number(-1 << 63)},
	{"$5\r\na\r\nb\x00\r\n", text('$', "a\r\nb\x00")},
	{"$0\r\n\r\n", text('$', "")},
	{"$-1\r\n", Value{Kind: '$', Null: true}},
	{"*0\r\n", list()},
	{"*-1\r\n", Value{Kind: '*', Null: true}},
	{"*2\r\n:1\r\n$16\r\n1790000000123456\r\n", list(number(1), text('$', "1790000000123456"))},
	{"*3\r\n:0\r\n$12\r\nowner {\"a\":}\r\n:29000\r\n", list(number(0), text('$', `owner {"a":}`), number(29000))},
	{"_\r\n", Value{Kind: '$', Null: true}},
	{"#t\r\n", number(1)},
	{"#f\r\n", number(0)},
	{",1.5\r\n", text('$', "1.5")},
	{"(12345678901234567890\r\n", text('$', "12345678901234567890")},
	{"!6\r\nERR no\r\n", text('-', "ERR no")},
	{"!12\r\nERR no\nmore.\r\n", text('-', "ERR no\nmore.")},
	{"=8\r\ntxt:a\r\nb\r\n", text('$', "a\r\nb")},
	{"%2\r\n+a\r\n:1\r\n+b\r\n_\r\n", list(text('+', "a"), number(1), text('+', "b"), Value{Kind: '$', Null: true})},
	{"~1\r\n:1\r\n", list(number(1))},
	{">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n", Value{Kind: '>', List: []Value{text('$', "message"), text('$', "c"), text('$', "m")}}},
	{"*2\r\n$2\r\n17\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n", list(text('$', "17"), list(text('$', "a"), text('$', "b")))},
}

// malformed has what no server sends.
var malformed = []string{
	"\r\n", "\n", "x\r\n", "\x00\r\n", "+\n", ":\r\n", ":+1\r\n", ":1x\r\n", ":9223372036854775808\r\n", ": 1\r\n",
	"$-2\r\n", "$x\r\n", "$\r\n", "$536870913\r\n", "$99999999999999999999\r\n", "$3\r\nabcd\r\n", "$3\r\nabc\n\n",
	"*-2\r\n", "*262145\r\n", "*99999999999999999999\r\n", "*1\r\n$-9\r\n",
	"*2\r\n*140000\r\n" + strings.Repeat(":1\r\n", 140000) + "*140000\r\n",
	"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
	"_x\r\n", "#x\r\n", "#\r\n", "#tt\r\n", "%-1\r\n", "~-1\r\n", ">-1\r\n", "%140000\r\n", "*1\r\n>1\r\n:1\r\n", "|1\r\n", "!-1\r\n", "!2\r\nabc\r\n", "=3\r\nabc\r\n", "=-1\r\n",
	"+" + strings.Repeat("x", lineBuffer) + "\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n",
}

func TestReplies(t *testing.T) {
	var all strings.Builder
	for _, c := range sound {
		all.WriteString(c.wire)
	}
	for name, in := range map[string]io.Reader{
		"AtOnce":     strings.NewReader(all.String()),
		"ByteByByte": iotest.OneByteReader(strings.NewReader(all.String())),
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(in)
			for _, c := range sound {
				v, err := r.Next()
				if got, want := fmt.Sprintf("%c %v", v.Kind, v), fmt.Sprintf("%c %v", c.want.Kind, c.want); err != nil || got != want {
					t.Fatalf("%q: %s, %v; want %s", c.wire, got, err, want)
				}
			}
			if _, err := r.Next(); err != io.EOF {
				t.Errorf("at the end: %v, want io.EOF", err)
			}
		})
	}
}

func TestMalformedReplies(t *testing.T) {
	for _, s := range malformed {
		r := NewReader(strings.NewReader(s))
		if v, err := r.Next(); err == nil || err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%.40q: %v, %v; want it refused", s, v, err)
		}
	}
}

// A clone does not change when the next reply is read into the same memory.
func TestClonedReplyStays(t *testing.T) {
	const first, second = "*2\r\n$3\r\nabc\r\n*1\r\n$1\r\nd\r\n", "*2\r\n$3\r\nxyz\r\n*1\r\n$1\r\nq\r\n"
	r := NewReader(strings.NewReader(first + second))
	v, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	kept := v.Clone()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if want := list(text('$', "abc"), list(text('$', "d"))); !reflect.DeepEqual(kept, want) {
		t.Errorf("%v, want %v", kept, want)
	}
}

// A reply takes no memory for bytes that are announced and have not arrived. Values longer
// than any lock's are not kept.
func TestRepliesTakeLittleMemory(t *testing.T) {
	taken := func(read func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		read()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	const most = 1 << 20
	for _, s := range []string{"$536870912\r\nabc", "*65536\r\n:1\r\n", "*1\r\n*65535\r\n$536870912\r\n"} {
		if n := taken(func() {
			r := NewReader(strings.NewReader(s))
			if _, err := r.Next(); err != io.EOF {
				t.Errorf("%q: %v, want the end of the stream", s, err)
			}
		}); n > most {
			t.Errorf("reading %q took %d bytes of memory, want at most %d", s, n, most)
		}
	}
	long := io.MultiReader(strings.NewReader("$67108864\r\n"), io.LimitReader(zeros{}, 64<<20), strings.NewReader("\r\n+next\r\n"))
	if n := taken(func() {
		r := NewReader(long)
		v, err := r.Next()
		if err != nil || len(v.Text) != mostKept {
			t.Errorf("a long string: %d bytes, %v; want %d", len(v.Text), err, mostKept)
		}
		if v, err = r.Next(); err != nil || string(v.Text) != "next" {
			t.Errorf("after a long string: %v, %v, want next", v, err)
		}
	}); n > most {
		t.Errorf("reading a long string took %d bytes of memory, want at most %d", n, most)
	}
	many := strings.Repeat("$65536\r\n"+strings.Repeat("x", mostKept)+"\r\n", mostMemory/mostKept+1)
	r := NewReader(strings.NewReader(fmt.Sprintf("*%d\r\n", mostMemory/mostKept+1) + many))
	if _, err := r.Next(); err == nil {
		t.Error("a reply with more strings than the limit was read")
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// Reading a script's reply allocates nothing once a reader has its memory.
func TestReadingAllocatesNothing(t *testing.T) {
	in := &endless{text: []byte("*2\r\n:1\r\n$16\r\n1790000000123456\r\n")}
	r := NewReader(in)
	if n := testing.AllocsPerRun(1000, func() {
		if v, err := r.Next(); err != nil || len(v.List) != 2 {
			t.Fatal(v, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a reply, want none", n)
	}
}

// endless repeats its text without end.
type endless struct {
	text []byte
	at   int
}

func (e *endless) Read(b []byte) (n int, err error) {
	for n < len(b) {
		k := copy(b[n:], e.text[e.at:])
		n, e.at = n+k, (e.at+k)%len(e.text)
	}
	return n, nil
}

// FuzzReplies reads any bytes, whole and byte by byte. The result is the same, also after it
// was written and read again, and it never takes much memory.
func FuzzReplies(f *testing.F) {
	for _, c := range sound {
		f.Add([]byte(c.wire + "+next\r\n"))
	}
	for _, s := range malformed {
		if len(s) < 1000 {
			f.Add([]byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, bits := NewReader(bytes.NewReader(b)), NewReader(iotest.OneByteReader(bytes.NewReader(b)))
		for {
			v, err := whole.Next()
			w, errBits := bits.Next()
			if fmt.Sprint(err) != fmt.Sprint(errBits) || v.String() != w.String() {
				t.Fatalf("%v, %v at once; %v, %v byte by byte", v, err, w, errBits)
			}
			if cap(whole.text) > 2*len(b)+mostKept {
				t.Fatalf("reading %d bytes took %d bytes of memory", len(b), cap(whole.text))
			}
			if err != nil {
				return
			}
			again := NewReader(bytes.NewReader(write(nil, v)))
			if w, err := again.Next(); err != nil || !same(v, w) {
				t.Fatalf("%v written again reads %v, %v", v, w, err)
			}
		}
	})
}

// same reports whether two values are equal. No text and an empty text are the same.
func same(v, w Value) bool {
	return v.Kind == w.Kind && v.Null == w.Null && v.Num == w.Num && bytes.Equal(v.Text, w.Text) &&
		slices.EqualFunc(v.List, w.List, same)
}

// write is the inverse of reading.
func write(b []byte, v Value) []byte {
	switch {
	case v.Null:
		return fmt.Appendf(b, "%c-1\r\n", v.Kind)
	case v.Kind == ':':
		return fmt.Appendf(b, ":%d\r\n", v.Num)
	case v.Kind == '$':
		return fmt.Appendf(b, "$%d\r\n%s\r\n", len(v.Text), v.Text)
	case v.Kind == '-': // it can have several lines
		return fmt.Appendf(b, "!%d\r\n%s\r\n", len(v.Text), v.Text)
	case v.Kind == '*', v.Kind == '>':
		b = fmt.Appendf(b, "%c%d\r\n", v.Kind, len(v.List))
		for _, e := range v.List {
			b = write(b, e)
		}
		return b
	}
	return fmt.Appendf(b, "%c%s\r\n", v.Kind, v.Text)
}
