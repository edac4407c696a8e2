package cli

// The package knows how to open the URLs.
import _ "github.com/leasehold-dev/leasehold/store/zkstore"

var zookeeperScheme = scheme{
	names: []string{"zookeeper"},
	usage: "zookeeper://USER:PASSWORD@HOST:PORT,HOST:PORT/leasehold?reader=SCHEME:ID&max_ttl=20s",
	help: `A ZooKeeper ensemble, for locks between machines that Curator and go-zookeeper
also use. /leasehold is the node below which locks are kept. USER and PASSWORD are
an identity of scheme digest; "leasehold acl --zookeeper NODE" prints the ACL. reader
may look at new locks. If the servers set minSessionTimeout, add their tickTime as
tick=2s. The TTL is at most maxSessionTimeout, less three ticks.`,
	single: true,
}
