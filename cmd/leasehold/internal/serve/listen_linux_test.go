package serve_test

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// A connection ends half a minute after its other end stopped to acknowledge what is written.
func TestUnacknowledgedConnectionsEnd(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	l, err := serve.New(serve.Options{Store: st}).Listen(serve.Listening{Address: "127.0.0.1:0", Drain: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial(t, "http://"+l.Addr().String())
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	ms := 0
	if e := raw.Control(func(fd uintptr) { ms, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); e != nil || err != nil || ms != 30_000 {
		t.Errorf("the bound is %d ms, %v, %v, want 30 s", ms, e, err)
	}
}
