// Package port picks ports of the loopback interface for servers that tests start.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports come from below the range out of which systems number outgoing
// connections. A port of that range could be taken by any client while a
// killed server is down; worse, a client that keeps dialling the dead server
// could be given the server's own port and end up connected to itself.
const first, last = 10000, 32000

// taken has the ports that this process has picked, including those of servers that are down.
var taken = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// Pick finds a port on which no program listens, and which no other call in this process has
// picked and not released. It is safe for concurrent use. Another process may still
// take the port first: the server then fails to start, and the caller picks another.
func Pick() (int, error) {
	var why error
	for range 200 {
		port := first + rand.IntN(last-first)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			why = err
			continue
		}
		l.Close()
		taken.Lock()
		free := !taken.ports[port]
		taken.ports[port] = true
		taken.Unlock()
		if free {
			return port, nil
		}
	}
	return 0, fmt.Errorf("found no free port on 127.0.0.1 between %d and %d: %w", first, last, why)
}

// Release lets Pick return the port again.
func Release(port int) {
	taken.Lock()
	defer taken.Unlock()
	delete(taken.ports, port)
}
