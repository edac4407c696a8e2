package serve

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unacknowledged is how long a client may leave data unacknowledged, in milliseconds. Without
// this limit, a connection whose client is gone lasts for a quarter of an hour, and so does the
// lock that it holds.
const unacknowledged = 30_000

// endsUnacknowledged sets that for all connections of a listener.
func endsUnacknowledged(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, unacknowledged) // it is no more than an improvement
	})
}
