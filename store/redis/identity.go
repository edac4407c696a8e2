package redis

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// identity is what a server says of itself; empty where it may not.
type identity struct {
	runID string // new at every start of the server
}

func parseIdentity(info string) identity {
	var id identity
	for l := range strings.Lines(info) {
		if k, v, ok := strings.Cut(strings.TrimSpace(l), ":"); ok && k == "run_id" {
			id.runID = v
		}
	}
	return id
}

var errSameServer = errors.New("the same server is listed under two addresses")

// registry knows which server answers at which address. Two addresses of one
// server would count its vote twice, and two clients could both have "a
// majority".
type registry struct {
	mu  sync.Mutex
	ids map[int]identity
}

// vet refuses a server that already answers at another node's address.
func (r *registry) vet(n *node, id identity, nodes []*node) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, n.index)
	if id.runID == "" {
		return nil
	}
	for other, oid := range r.ids {
		if oid.runID == id.runID {
			return fmt.Errorf("%w: %s and %s (run_id %s): list each server once, its vote would count double", errSameServer, nodes[other].addr.host, n.addr.host, id.runID)
		}
	}
	r.ids[n.index] = id
	return nil
}
