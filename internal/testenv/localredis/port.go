package localredis

import (
	"errors"
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
const firstPort, lastPort = 10000, 32000

var errPortTaken = errors.New("localredis: the port is taken")

// taken are the ports of this process's servers, including those that are down.
var taken = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// pickPort finds a port on which nobody listens. Another process may still take
// it first; the server then fails to start, and another port is tried.
func pickPort() (int, error) {
	var last error
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
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
	return 0, fmt.Errorf("localredis: found no free port on 127.0.0.1 between %d and %d: %w", firstPort, lastPort, last)
}

func releasePort(port int) {
	taken.Lock()
	defer taken.Unlock()
	delete(taken.ports, port)
}

// pickPorts picks the ports of a server.
func (s *Server) pickPorts(cluster bool) (err error) {
	if s.port, err = pickPort(); err == nil && cluster {
		if s.bus, err = pickPort(); err != nil {
			releasePort(s.port)
		}
	}
	return err
}

func (s *Server) releasePorts() {
	releasePort(s.port)
	releasePort(s.bus)
}
