package localredis

import (
	"errors"

	"github.com/leasehold-dev/leasehold/internal/testenv/port"
)

var errPortTaken = errors.New("localredis: the port is taken")

// busDistance is how far the port of a cluster's bus is from that of the server. Redis 6 has no
// setting for it.
const busDistance = 10000

// pickPorts picks the ports of a server.
func (s *setup) pickPorts(cluster bool) (err error) {
	if !cluster {
		s.port, err = port.Pick()
		return err
	}
	s.port, err = port.PickWith(busDistance)
	s.bus = s.port + busDistance
	return err
}

func (s *setup) releasePorts() {
	port.Release(s.port)
	port.Release(s.bus)
}
