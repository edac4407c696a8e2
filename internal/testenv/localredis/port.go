package localredis

import (
	"errors"

	"github.com/leasehold-dev/leasehold/internal/testenv/port"
)

var errPortTaken = errors.New("localredis: the port is taken")

// pickPorts picks the ports of a server.
func (s *setup) pickPorts(cluster bool) (err error) {
	if s.port, err = port.Pick(); err == nil && cluster {
		if s.bus, err = port.Pick(); err != nil {
			port.Release(s.port)
		}
	}
	return err
}

func (s *setup) releasePorts() {
	port.Release(s.port)
	port.Release(s.bus)
}
