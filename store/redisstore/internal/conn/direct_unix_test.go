//go:build unix

package conn

import (
	"io"
	"net"
	"testing"
	"time"
)

// ReadNow returns what has arrived, and does not wait for more.
func TestReadNow(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	d, b := newDirect(near), make([]byte, 8)
	arrives := func() (n int, err error) {
		for ok := false; !ok && err == nil; {
			n, ok, err = d.ReadNow(b)
		}
		return n, err
	}

	if n, ok, err := d.ReadNow(b); ok || err != nil {
		t.Errorf("nothing was sent, and ReadNow returned %d bytes, %v, %v", n, ok, err)
	}
	far.Write([]byte("one"))
	if n, err := arrives(); string(b[:n]) != "one" || err != nil {
		t.Errorf("got %q, %v, want one", b[:n], err)
	}
	near.SetReadDeadline(time.Unix(1, 0))
	if _, ok, err := d.ReadNow(b); ok || !IsTimeout(err) {
		t.Errorf("after the deadline ReadNow returned %v, %v, want a timeout", ok, err)
	}
	near.SetReadDeadline(time.Time{})
	far.Write([]byte("two"))
	if n, err := d.Read(b); string(b[:n]) != "two" || err != nil { // waits again
		t.Errorf("got %q, %v, want two", b[:n], err)
	}
	far.Close()
	if _, err := arrives(); err != io.EOF {
		t.Errorf("at the end ReadNow returned %v, want io.EOF", err)
	}
}
