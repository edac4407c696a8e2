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

// picked has the ports that this process has picked, including those of servers that are down.
// A UDP socket on each of them keeps it from other processes, whose tests run beside these: no
// server of the tests uses UDP, and the system closes the sockets of a process that is killed.
var picked = struct {
	sync.Mutex
	ports map[int]net.PacketConn
}{ports: map[int]net.PacketConn{}}

// Pick finds a port on which no program listens, and which no other call, in any process, has
// picked and not released. It is safe for concurrent use. A program that picks its ports in
// another way may still take the port first: the server then fails to start, and the caller
// picks another.
func Pick() (int, error) {
	for range 200 {
		if port := first + rand.IntN(last-first); reserve(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("found no free port on 127.0.0.1 between %d and %d", first, last)
}

// PickWith is like Pick, and picks the port at the given distance behind it as well.
func PickWith(distance int) (int, error) {
	for range 200 {
		port := first + rand.IntN(last-first-distance)
		if !reserve(port) {
			continue
		}
		if reserve(port + distance) {
			return port, nil
		}
		Release(port)
	}
	return 0, fmt.Errorf("found no two free ports %d apart on 127.0.0.1 between %d and %d", distance, first, last)
}

// reserve picks the port, and reports whether it was free.
func reserve(port int) bool {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	mark, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		mark.Close()
		return false
	}
	l.Close()
	picked.Lock()
	defer picked.Unlock()
	picked.ports[port] = mark
	return true
}

// Release lets Pick return the port again.
func Release(port int) {
	picked.Lock()
	defer picked.Unlock()
	if mark := picked.ports[port]; mark != nil {
		mark.Close()
		delete(picked.ports, port)
	}
}
