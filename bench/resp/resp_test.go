package resp

import (
	"bufio"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

func TestAppendCommand(t *testing.T) {
	if got := string(AppendCommand([]byte("x"), "SET", "", "é")); got != "x*3\r\n$3\r\nSET\r\n$0\r\n\r\n$2\r\né\r\n" {
		t.Errorf("%q, want the command in RESP after x", got)
	}
}

func TestRead(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	r := bufio.NewReaderSize(strings.NewReader("+OK\r\n-ERR no\r\n:42\r\n:-1\r\n$3\r\na\r\n\r\n$-1\r\n_\r\n$10000\r\n"+long+"\r\n*2\r\n:1\r\n:2\r\n%1\r\n+a\r\n*0\r\n>2\r\n+a\r\n$1\r\nb\r\n"), 16)
	for _, want := range []Reply{
		{Kind: Status, Bytes: []byte("OK")}, {Kind: Error, Bytes: []byte("ERR no")}, {Kind: Number, Number: 42}, {Kind: Number, Number: -1},
		{Kind: Text, Bytes: []byte("a\r\n")[:3]}, {Kind: Nil}, {Kind: Nil}, {Kind: Text, Bytes: []byte(long)},
		{Kind: List, Number: 2}, {Kind: Map}, {Kind: Push, Bytes: []byte("b")},
	} {
		got, err := Read(r)
		if err != nil || got.Kind != want.Kind || got.Number != want.Number || string(got.Bytes) != string(want.Bytes) {
			t.Fatalf("%c %d %.20q, %v, want %c %d %.20q", got.Kind, got.Number, got.Bytes, err, want.Kind, want.Number, want.Bytes)
		}
	}
	for _, bad := range []string{"", "\r\n", "x\r\n", ":\r\n", ":1x\r\n", ":99999999999999999999\r\n", "$5\r\nab", "*1\r\n", "*x\r\n", "%1\r\n:1\r\n"} {
		if got, err := Read(bufio.NewReader(strings.NewReader(bad))); err == nil {
			t.Errorf("%q was read as %c %q, want an error", bad, got.Kind, got.Bytes)
		}
	}
}

func TestReadEach(t *testing.T) {
	r := bufio.NewReaderSize(strings.NewReader(":7\r\n*2\r\n:1\r\n-ERR no\r\n*0\r\n+OK\r\n"), 16)
	for _, want := range []struct {
		kind     byte
		elements string
	}{{Number, ""}, {List, ":-"}, {List, ""}, {Status, ""}} {
		var elements []byte
		got, err := ReadEach(r, func(e Reply) { elements = append(elements, e.Kind) })
		if err != nil || got.Kind != want.kind || string(elements) != want.elements {
			t.Fatalf("%c with the elements %q, %v, want %c with %q", got.Kind, elements, err, want.kind, want.elements)
		}
	}
	for _, bad := range []string{"", "*\r\n", "*x\r\n", "*1\n", "*2\r\n:1\r\n"} {
		if got, err := ReadEach(bufio.NewReader(strings.NewReader(bad)), func(Reply) {}); err == nil {
			t.Errorf("%q was read as %c, want an error", bad, got.Kind)
		}
	}
}

func TestAsk(t *testing.T) {
	addr := redistest.Start(t).Addr()
	for _, c := range []struct {
		args []string
		want string
	}{{[]string{"PING"}, "PONG"}, {[]string{"SET", "a", "b"}, "OK"}, {[]string{"GET", "a"}, "b"}, {[]string{"DEL", "a"}, "1"}} {
		if got, err := Ask(addr, c.args...); err != nil || got != c.want {
			t.Errorf("%q: %q, %v, want %q", c.args, got, err, c.want)
		}
	}
	if _, err := Ask(addr, "NONSENSE"); err == nil {
		t.Error("an unknown command: no error, want that of the server")
	}
	if info, err := Ask(addr, "INFO"); err != nil || !strings.Contains(info, "used_cpu_user:") {
		t.Errorf("INFO: %.100q, %v, want text with used_cpu_user", info, err)
	}
}
