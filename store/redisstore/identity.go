package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// identity is what a server says of itself; empty where it may not.
type identity struct {
	runID       string // new at every start of the server
	replication string // changes when its data is replaced by another server's
	// promoted: it was a replica once, and its master's last writes may be
	// missing, however long it has been up.
	promoted bool
	appends  bool // every write goes to a file; see also always
	always   bool // before it is answered, also while the file is rewritten
	readable bool // whether the configuration says so
	loading  bool // it reads its data, and says meanwhile that it appends nothing

	mode, role, eviction string // empty where unknown
	bounded              bool   // it has a memory limit
}

// unfit says why the server can not be one of several nodes that decide by
// majority, nil if it can as far as it says.
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

// parseIdentity reads what INFO and CONFIG GET *appendfsync* say.
func parseIdentity(info, fsync value) identity {
	var id identity
	for l := range strings.Lines(string(info.text)) {
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
	for pairs := fsync.list; len(pairs) >= 2; pairs = pairs[2:] {
		settings[string(pairs[0].text)] = string(pairs[1].text)
	}
	if when, ok := settings["appendfsync"]; ok {
		id.readable, id.always = true, when == "always" && settings["no-appendfsync-on-rewrite"] == "no"
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
