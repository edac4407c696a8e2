package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// identity is what a server reports about itself. Fields it does not report are zero.
type identity struct {
	runID       string // changes at every start of the server
	replication string // changes when its data is replaced by another server's
	// promoted is set if the server was a replica once. It may lack its former master's
	// last writes, however long it has been up.
	promoted bool
	appends  bool // every write goes to a file; see also always
	always   bool // the file is synced before the answer, even while it is rewritten
	readable bool // the user may read the configuration
	loading  bool // it is reading its data, and reports meanwhile that it appends nothing

	mode, role, eviction string // empty if unknown
	bounded              bool   // there is a memory limit
}

// unfit returns why the server cannot be one of several independent nodes; nil if nothing
// is known against it.
func (id identity) unfit() error {
	switch {
	case id.role != "" && id.role != "master":
		return fmt.Errorf("%w: it is a replica or replicates in both directions (role %s): list independent masters only", errUnfit, id.role)
	case id.mode != "" && id.mode != "standalone":
		return fmt.Errorf("%w: it runs as a %s, whose failovers lose locks: list independent servers", errUnfit, id.mode)
	case id.bounded && id.eviction != "" && id.eviction != "noeviction":
		return fmt.Errorf("%w: it may evict locks (maxmemory-policy %s): set it to noeviction", errUnfit, id.eviction)
	}
	return nil
}

var errUnfit = errors.New("the server is not fit to be a node")

// parseIdentity reads the replies to INFO and CONFIG GET *appendfsync*.
func parseIdentity(info, fsync resp.Value) identity {
	var id identity
	for l := range strings.Lines(string(info.Text)) {
		k, v, _ := strings.Cut(strings.TrimSpace(l), ":")
		switch k {
		case "run_id":
			id.runID = v
		case "master_replid":
			id.replication = v
		case "master_replid2":
			id.promoted = strings.Trim(v, "0") != ""
		case "aof_enabled":
			id.appends = v == "1"
		case "loading":
			id.loading = v == "1"
		case "redis_mode":
			id.mode = v
		case "role":
			id.role = v
		case "maxmemory":
			id.bounded = v != "0"
		case "maxmemory_policy":
			id.eviction = v
		}
	}
	settings := map[string]string{}
	for pairs := fsync.List; len(pairs) >= 2; pairs = pairs[2:] {
		settings[string(pairs[0].Text)] = string(pairs[1].Text)
	}
	if when, ok := settings["appendfsync"]; ok {
		id.readable, id.always = true, when == "always" && settings["no-appendfsync-on-rewrite"] == "no"
	}
	return id
}

var errSameServer = errors.New("the same server is listed under two addresses")

// registry records which server answers at which address. If two addresses led to one
// server, its vote would count double, and two clients could both have a "majority".
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
			return fmt.Errorf("%w: %s and %s (run_id %s): list each server once, or its vote counts double", errSameServer, nodes[other].addr.host, n.addr.host, id.runID)
		}
	}
	r.ids[n.index] = id
	return nil
}
