package etcdstore_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// TestOpenSaysThatNothingListens opens a store on a port without a listener. The
// error must not say that a server was too slow.
func TestOpenSaysThatNothingListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	st, err := etcdstore.Open(t.Context(), []string{addr}, &etcdstore.Options{Timeout: 2 * time.Second})
	if err == nil {
		st.Close()
		t.Fatal("opened a store without a server")
	}
	if text := err.Error(); !strings.Contains(text, "unreachable: "+addr+": cannot connect") || strings.Contains(text, "no answer") {
		t.Errorf("open: %s, want that it cannot connect to %s", text, addr)
	}
}
