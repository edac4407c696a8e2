package tally

import "github.com/leasehold-dev/leasehold/store/redisstore"

// NodeState returns the state of a node in one word.
func NodeState(n redisstore.NodeStats) string {
	switch {
	case n.Err != nil:
		return "down"
	case n.QuarantinedFor > 0:
		return "quarantined"
	}
	return "up"
}

// NodeStates are all that NodeState returns.
func NodeStates() []string { return []string{"up", "down", "quarantined"} }
