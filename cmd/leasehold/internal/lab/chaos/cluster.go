package chaos

import (
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// Durable are the settings of a server that loses nothing it has acknowledged.
var Durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// Cluster is a number of independent Redis servers, each behind a proxy.
type Cluster struct {
	Nodes []*Node
}

// Node is one server and the network in front of it.
type Node struct {
	Server *redistest.Server
	Proxy  *faultproxy.Proxy
	busy   sync.Mutex // held while something is done to it
}

// Start starts n servers with the given settings. They end with the test.
func Start(t testing.TB, n int, settings ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	for _, s := range redistest.StartN(t, n, settings...) {
		c.Nodes = append(c.Nodes, &Node{Server: s, Proxy: faultproxy.New(t, s.Addr())})
	}
	return c
}

// URL returns a URL of the given nodes, or of all nodes, by the addresses of
// their proxies.
func (c *Cluster) URL(settings url.Values, nodes ...int) string {
	if len(nodes) == 0 {
		for i := range c.Nodes {
			nodes = append(nodes, i)
		}
	}
	var addrs []string
	for _, i := range nodes {
		addrs = append(addrs, c.Nodes[i].Proxy.Addr())
	}
	return "redis://" + strings.Join(addrs, ",") + "/0?" + settings.Encode()
}
