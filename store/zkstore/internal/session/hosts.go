package session

import (
	"math/rand/v2"
	"time"
)

// hosts tells the library which server is next. It connects to them in turn, in the order
// of the pool, so that all sessions of a pool begin with one server.
type hosts struct {
	link    *link
	servers []string
	next    int
}

// Init implements zk.HostProvider. The library has shuffled the servers.
func (h *hosts) Init([]string) error { return nil }

// Len implements zk.HostProvider.
func (h *hosts) Len() int { return len(h.servers) }

// Connected implements zk.HostProvider.
func (h *hosts) Connected() {}

// Next implements zk.HostProvider. The library looks whether it was closed only if retry
// is set, and fails requests that it has not sent.
func (h *hosts) Next() (server string, retry bool) {
	dials := h.link.dialing() // until a handshake is answered
	if rounds := dials / len(h.servers); rounds > 0 && dials%len(h.servers) == 0 {
		pause := min(20*time.Millisecond<<min(rounds, 5), 500*time.Millisecond)
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-h.link.over:
		}
	}
	server = h.servers[h.next%len(h.servers)]
	h.next++
	return server, h.link.ended()
}
