package sqltest

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// freePort finds a port on which nobody listens. It is below the range of ports
// for outgoing connections, from which any client could take the port before the
// server does. Another server may still take it first; that shows when ours
// starts.
func freePort() (int, error) {
	const first, last = 10000, 32000
	var taken error
	for range 200 {
		port := first + rand.IntN(last-first)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			taken = err
			continue
		}
		l.Close()
		return port, nil
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 between %d and %d: %w", first, last, taken)
}
