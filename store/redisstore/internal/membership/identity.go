package membership

import (
	"fmt"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Identity is what a server reports about itself. Fields it does not report are zero.
type Identity struct {
	RunID       string // changes at every start of the server
	Replication string // changes when its data is replaced by another server's
	// Promoted is set if the server was a replica once. It may lack its former master's
	// last writes, however long it has been up.
	Promoted bool
	Appends  bool // every write goes to a file; see also always
	Always   bool // the file is synced before the answer, even while it is rewritten
	Readable bool // the user may read the configuration
	Loading  bool // it is reading its data, and reports meanwhile that it appends nothing

	Mode, Role, eviction string // empty if unknown
	bounded              bool   // there is a memory limit
}

// Unfit returns why the server cannot be one of several independent nodes; nil if nothing
// is known against it.
func (id Identity) Unfit() error {
	switch {
	case id.Role != "" && id.Role != "master":
		return fmt.Errorf("%w: it is a replica or replicates in both directions (role %s): list independent masters only", errUnfit, id.Role)
	case id.Mode != "" && id.Mode != "standalone":
		return fmt.Errorf("%w: it runs as a %s, whose failovers lose locks: list independent servers", errUnfit, id.Mode)
	case id.bounded && id.eviction != "" && id.eviction != "noeviction":
		return fmt.Errorf("%w: it may evict locks (maxmemory-policy %s): set it to noeviction", errUnfit, id.eviction)
	}
	return nil
}

var errUnfit = script.NewUnusable("the server is not fit to be a node")

// ParseIdentity reads the replies to INFO and CONFIG GET *appendfsync*.
func ParseIdentity(info, fsync resp.Value) Identity {
	var id Identity
	for l := range strings.Lines(string(info.Text)) {
		k, v, _ := strings.Cut(strings.TrimSpace(l), ":")
		switch k {
		case "run_id":
			id.RunID = v
		case "master_replid":
			id.Replication = v
		case "master_replid2":
			id.Promoted = strings.Trim(v, "0") != ""
		case "aof_enabled":
			id.Appends = v == "1"
		case "loading":
			id.Loading = v == "1"
		case "redis_mode":
			id.Mode = v
		case "role":
			id.Role = v
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
		id.Readable, id.Always = true, when == "always" && settings["no-appendfsync-on-rewrite"] == "no"
	}
	return id
}

var ErrSameServer = script.NewUnusable("the same server is listed under two addresses")

// Registry records which server answers at which address. If two addresses led to one
// server, its vote would count double, and two clients could both have a "majority".
type Registry struct {
	mu  sync.Mutex
	ids map[int]entry
}

// entry is one server of a registry.
type entry struct{ host, runID string }

// Vet refuses a server that already answers at another node's address.
func (r *Registry) Vet(node int, host string, id Identity) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = map[int]entry{}
	}
	delete(r.ids, node)
	if id.RunID == "" {
		return nil
	}
	for _, other := range r.ids {
		if other.runID == id.RunID {
			return fmt.Errorf("%w: %s and %s (run_id %s): list each server once, or its vote counts double", ErrSameServer, other.host, host, id.RunID)
		}
	}
	r.ids[node] = entry{host, id.RunID}
	return nil
}

// Durable reports whether the server appends every write before it answers. Only a client
// that may read the configuration says "always". A client that may not read it takes the
// claim back when it connects, since the server's settings are unknown while it writes,
// unless Options asserts them.
func (id Identity) Durable(asserted bool) string {
	switch {
	case id.Readable && id.Appends && id.Always:
		return "always"
	case id.Readable:
		return "never"
	case asserted:
		return "asserted"
	}
	return "unknown"
}
