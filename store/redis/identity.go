package redis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// identity is what a server says of itself; empty where it may not.
type identity struct {
	runID  string        // new at every start of the server
	uptime time.Duration // at least
	// promoted: it was a replica once, and its master's last writes may be
	// missing, however long it has been up.
	promoted bool
	appends  bool // every write goes to a file; see also always
	always   bool // before it is answered
	readable bool // whether the configuration says so
}

// parseIdentity reads what INFO and CONFIG GET appendfsync say.
func parseIdentity(info, fsync value) identity {
	var id identity
	for l := range strings.Lines(string(info.text)) {
		k, v, _ := strings.Cut(strings.TrimSpace(l), ":")
		switch k {
		case "run_id":
			id.runID = v
		case "uptime_in_seconds":
			// Counted from a full second: it may be one too many.
			if s, err := strconv.ParseInt(v, 10, 32); err == nil && s > 0 {
				id.uptime = time.Duration(s-1) * time.Second
			}
		case "master_replid2":
			id.promoted = strings.Trim(v, "0") != ""
		case "aof_enabled":
			id.appends = v == "1"
		}
	}
	if len(fsync.list) == 2 {
		id.readable, id.always = true, string(fsync.list[1].text) == "always"
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
