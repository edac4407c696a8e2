package prometheus

import (
	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold/adapters/internal/tally"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

var (
	nodeState   = prom.NewDesc("leasehold_node_state", "Whether a node is in that state, as this client knows it.", []string{"node", "state"}, nil)
	nodeDropped = prom.NewDesc("leasehold_node_dropped_releases_total", "Releases that a node never executed: their leases ended by their TTL.", []string{"node"}, nil)
)

func collectNodes(ch chan<- prom.Metric, stats redisstore.Stats) {
	for _, n := range stats.Nodes {
		is := tally.NodeState(n)
		for _, state := range tally.NodeStates() {
			v := 0.0
			if state == is {
				v = 1
			}
			ch <- prom.MustNewConstMetric(nodeState, prom.GaugeValue, v, n.Node, state)
		}
		ch <- prom.MustNewConstMetric(nodeDropped, prom.CounterValue, float64(n.Dropped), n.Node)
	}
}
