package layering

// project says where each package of the workspace belongs. A new package is
// registered here; paths are relative to the root module, "." is the root, and an
// entry that ends in "/*" stands for every package right below.
var project = rules{
	// From top to bottom. A package may import packages of lower layers only,
	// so packages of one layer, such as the stores, do not know each other.
	layers: [][]string{
		{"docs", "internal/proof/explore/cmd/explore", "internal/proof/mutants"},
		{"internal/proof/sim", "cmd/leasehold/internal/lab/chaos", "internal/proof/explore", "internal/proof/queues"},
		{"cmd/leasehold"},
		{"cmd/leasehold/internal/cli"},
		{"cmd/leasehold/internal/serve"},
		{"cmd/leasehold/internal/serve/page", "cmd/leasehold/internal/serve/redisdoor"},
		{"cmd/leasehold/internal/serve/observe"},
		{"cmd/leasehold/internal/serve/rights"},
		{"internal/testenv/objectstest"},
		{"cmd/leasehold/internal/runner", "cmd/leasehold/internal/lab/torture", "cmd/leasehold/internal/lab/stories", "internal/lab/load", "cmd/leasehold/internal/doctor", "cmd/leasehold/internal/lockview"},
		{"cmd/leasehold/internal/runner/warden", "cmd/leasehold/internal/cli/quit", "cmd/leasehold/internal/manual", "cmd/leasehold/internal/voice"},
		{"cmd/leasehold/internal/sigaction", "cmd/leasehold/internal/help", "cmd/leasehold/internal/screen", "cmd/leasehold/internal/textfile"},
		{"adapters/internal/tally", "adapters/synclocker", "internal/testenv/adaptertest", "internal/testenv/idle"},
		{"adapters/internal/held"},
		{"."},
		{"internal/waits"},
		{"internal/holds"},
		{"internal/renewer"},
		{"internal/leasefsm", "internal/waitq"},
		{"store/redisstore/redisadmin"},
		{"store/memstore", "store/redisstore", "store/filestore", "store/natsstore", "store/s3store", "store/gcsstore", "store/azblobstore", "store/kubernetesstore", "store/sqlstore", "store/etcdstore", "store/zkstore", "store/remotestore"},
		{"internal/objects"},
		{"store/recordstore"},
		{"store/redisstore/internal/operator", "store/redisstore/internal/fleet", "store/redisstore/internal/route", "store/zkstore/internal/zk"},
		{"store/redisstore/internal/node"},
		{"store/redisstore/internal/membership", "store/redisstore/internal/sentinel", "store/redisstore/internal/cluster", "store/redisstore/internal/view"},
		{"store/redisstore/internal/conn", "store/redisstore/internal/script"},
		{"store/redisstore/internal/config"},
		{"store/storetest", "internal/proof/differential", "internal/testenv/contest", "cmd/leasehold/internal/lab/history"},
		{"internal/gather", "internal/httpapi"},
		{"internal/quorum/driver", "internal/audience", "adapters/internal/redisurl", "internal/settings", "internal/shown", "internal/statejson", "internal/unclaimed"},
		{"store/driver"},
		{"store"},
		{"internal/quorum"},
		{"internal/proof/modelnode"},
		{"internal/rule"},
		{"guard/httpguard", "guard/redisguard", "guard/sqlguard"},
		{"internal/validity", "internal/nodeclock", "internal/longest", "internal/retain", "internal/testenv/virtual"},
		{"internal/clock"},
		{"clock"},
		{"fence"},
		{"internal/testenv/etcdtest", "internal/testenv/zktest"},
		{"internal/testenv/faultproxy", "internal/testenv/redistest", "internal/testenv/simnet", "internal/testenv/sqltest", "internal/layering", "cmd/leasehold/internal/endtoend", "guard/guardtest", "store/sqlstore/sqlstoretest", "store/natsstore/natsstoretest", "store/s3store/s3storetest", "store/gcsstore/gcsstoretest", "store/azblobstore/azblobstoretest", "store/kubernetesstore/kubernetesstoretest"},
		{"internal/testenv/browser", "internal/testenv/localredis", "internal/testenv/simredis"},
		{"internal/proof/induct/cmd/prove", "docs/pictures"},
		{"internal/proof/induct"},
		{"internal/testenv/child", "internal/testenv/door", "internal/callback", "internal/keypair", "internal/testenv/eventually", "internal/testenv/mutant", "internal/testenv/port", "internal/testenv/sameseed", "internal/testenv/sidebyside", "internal/testenv/torturetest", "internal/testenv/transcript", "internal/nodemark", "store/redisstore/internal/resp"},
		{"internal/excerpt", "internal/gate", "internal/testenv/built"},
	},

	// Test equipment: only test files, and other test equipment, import it.
	equipment: []string{
		"docs", "internal/proof/sim", "cmd/leasehold/internal/lab/chaos", "internal/proof/explore", "internal/proof/explore/cmd/explore", "internal/proof/mutants",
		"internal/proof/differential", "internal/proof/induct/cmd/prove", "internal/proof/queues",
		"store/storetest", "internal/testenv/adaptertest", "internal/testenv/browser", "internal/testenv/built", "internal/testenv/contest", "internal/testenv/door", "internal/testenv/eventually", "internal/testenv/idle", "internal/testenv/objectstest", "internal/testenv/redistest", "internal/testenv/sameseed", "internal/testenv/sidebyside", "internal/testenv/simnet", "internal/testenv/simredis", "internal/testenv/sqltest", "internal/testenv/torturetest", "internal/testenv/virtual", "internal/layering", "cmd/leasehold/internal/endtoend", "guard/guardtest", "store/sqlstore/sqlstoretest", "store/natsstore/natsstoretest", "store/s3store/s3storetest", "store/gcsstore/gcsstoretest", "store/azblobstore/azblobstoretest", "store/kubernetesstore/kubernetesstoretest", "internal/testenv/mutant",
	},

	// The packages of ours that a package may import, if not all packages below it.
	only: map[string][]string{
		"cmd/leasehold/internal/serve/redisdoor": {"cmd/leasehold/internal/serve/rights", "store"},
		"cmd/leasehold/internal/serve/observe":   {"cmd/leasehold/internal/serve/rights", "internal/statejson", "store", "fence"},
		"cmd/leasehold/internal/serve/page":      {"cmd/leasehold/internal/serve/observe", "cmd/leasehold/internal/serve/rights", "cmd/leasehold/internal/doctor", ".", "internal/excerpt", "internal/statejson", "store", "fence"},

		"cmd/leasehold":                      {"cmd/leasehold/internal/cli"},
		"cmd/leasehold/internal/manual":      {"cmd/leasehold/internal/help"},                                              // reads any command's help
		"cmd/leasehold/internal/runner":      {"cmd/leasehold/internal/runner/warden", "cmd/leasehold/internal/sigaction"}, // runs a command; what a lock or a store is, it does not know
		".":                                  {"store", "internal/holds", "internal/waits", "internal/leasefsm", "internal/validity", "internal/clock", "clock", "fence"},
		"internal/waits":                     {"store", "internal/holds", "internal/waitq", "internal/leasefsm", "internal/validity", "internal/clock"},
		"internal/holds":                     {"store", "internal/renewer", "internal/callback", "internal/leasefsm", "internal/validity", "internal/clock", "fence"},
		"cmd/leasehold/internal/lab/torture": {".", "store", "cmd/leasehold/internal/lab/history", "internal/clock", "guard/httpguard"},
		"internal/lab/load":                  {"."},
		"adapters/internal/tally":            {".", "store", "store/redisstore"},
		"adapters/synclocker":                {".", "store", "adapters/internal/held"},
		"adapters/internal/held":             {"."},
		"cmd/leasehold/internal/doctor":      {"store", "store/redisstore/redisadmin", "store/filestore", "store/natsstore", "store/s3store", "store/gcsstore", "store/azblobstore", "store/kubernetesstore", "store/sqlstore", "store/etcdstore", "store/zkstore", "internal/validity"},
		"cmd/leasehold/internal/lab/history": {"store", "internal/proof/induct", "internal/clock", "fence"},
		"internal/leasefsm":                  {"internal/validity", "internal/clock"},
		"internal/renewer":                   {"internal/leasefsm", "internal/clock"},
		"internal/waitq":                     {"internal/clock"},
		"internal/audience":                  {},
		"internal/gate":                      {},
		"internal/gather":                    {"internal/gate"},
		"adapters/internal/redisurl":         {"store"},
		"internal/unclaimed":                 {"store"},
		"store/zkstore/internal/zk":          {"internal/clock"},
		"store/redisstore/internal/conn":     {"store/redisstore/internal/config", "store/redisstore/internal/resp", "internal/clock"}, // no scripts, no locks
		"store/redisstore/internal/resp":     {"internal/excerpt"},
		"internal/shown":                     {"store", "internal/rule", "internal/clock", "fence"},
		"internal/quorum/driver":             {"store", "internal/quorum", "internal/rule", "internal/nodeclock", "internal/clock", "fence"},
		"store/driver":                       {"store"},
		"store":                              {"fence", "internal/excerpt", "internal/gate"},
		"guard/httpguard":                    {"fence"}, "guard/redisguard": {"fence"}, "guard/sqlguard": {"fence"},
	},

	// The packages that may import a package, if not everybody above it may.
	usedBy: map[string][]string{
		"internal/quorum/driver":               {"store/redisstore", "store/redisstore/internal/fleet", "store/redisstore/internal/node", "store/redisstore/internal/route", "store/sqlstore", "store/redisstore/redisadmin", "store/redisstore/internal/script", "cmd/leasehold/internal/lab/stories"},
		"internal/quorum":                      {"internal/quorum/driver", "store/redisstore", "store/redisstore/internal/fleet", "store/redisstore/internal/node", "store/redisstore/internal/route", "store/redisstore/redisadmin", "store/redisstore/internal/script", "store/redisstore/internal/config", "store/redisstore/internal/membership", "store/redisstore/internal/view", "cmd/leasehold/internal/lab/stories"},
		"internal/retain":                      {"store/redisstore/internal/node"},
		"cmd/leasehold/internal/runner/warden": {"cmd/leasehold/internal/runner"},
		"cmd/leasehold/internal/cli/quit":      {"cmd/leasehold/internal/cli"}, // it changes what SIGQUIT does
		"cmd/leasehold/internal/sigaction":     {"cmd/leasehold/internal/cli", "cmd/leasehold/internal/cli/quit", "cmd/leasehold/internal/runner"},
	},

	// The modules a package may use besides the standard library. Users of the
	// client alone get none of them, and those of a store only that store's.
	modules: map[string][]string{
		"cmd/leasehold/internal/cli":           {"github.com/go-sql-driver/mysql", "github.com/jackc/pgx/v5", "github.com/spf13/cobra", "github.com/spf13/pflag"},
		"cmd/leasehold/internal/lab/history":   {"github.com/anishathalye/porcupine"},
		"cmd/leasehold/internal/lab/stories":   {"github.com/go-zookeeper/zk", "go.etcd.io/etcd/client/v3", "go.uber.org/zap"},
		"cmd/leasehold/internal/help":          {"github.com/spf13/cobra", "github.com/spf13/pflag"},
		"cmd/leasehold/internal/manual":        {"github.com/spf13/cobra", "github.com/spf13/pflag"},
		"cmd/leasehold/internal/screen":        {"golang.org/x/term", "golang.org/x/text"},
		"cmd/leasehold/internal/runner":        {"golang.org/x/sys", "golang.org/x/term"},
		"cmd/leasehold/internal/runner/warden": {"golang.org/x/sys"},
		"cmd/leasehold/internal/serve":         {"golang.org/x/sys"},
		"cmd/leasehold/internal/sigaction":     {"golang.org/x/sys"},
		"store/azblobstore":                    {"github.com/Azure/azure-sdk-for-go/sdk/azcore", "github.com/Azure/azure-sdk-for-go/sdk/azidentity"},
		"store/etcdstore":                      {"go.etcd.io/etcd/api/v3", "go.etcd.io/etcd/client/v3", "go.uber.org/zap", "google.golang.org/grpc"},
		"store/filestore":                      {"golang.org/x/sys"},
		"store/gcsstore":                       {"golang.org/x/oauth2"},
		"store/kubernetesstore":                {"k8s.io/apimachinery", "k8s.io/client-go"},
		"store/natsstore":                      {"github.com/nats-io/nats.go"},
		"store/s3store":                        {"github.com/aws/aws-sdk-go-v2", "github.com/aws/aws-sdk-go-v2/config", "github.com/aws/aws-sdk-go-v2/service/s3", "github.com/aws/smithy-go"},
	},

	// Functions of their arguments: a checker that drives one of these with
	// made-up time and made-up messages sees all there is to see.
	pure: []string{"cmd/leasehold/internal/doctor", "internal/excerpt", "internal/leasefsm", "internal/proof/modelnode", "internal/nodemark", "internal/quorum", "internal/retain", "internal/rule", "internal/validity", "internal/waitq"},

	idioms: idioms{
		typed:  []string{"internal/quorum/driver", "store/redisstore", "store/redisstore/internal/node", "store/redisstore/internal/fleet", "store/redisstore/internal/route", "store/redisstore/internal/conn"},
		stores: []string{"store/memstore", "store/recordstore", "store/redisstore", "store/filestore", "store/sqlstore", "store/etcdstore", "store/zkstore"},
		waits: map[string]string{
			"store/etcdstore.revoke":                      "before a lease is revoked again",
			"store/etcdstore.run":                         "before a failed request or watch is repeated",
			"store/filestore.first":                       "for a process that has just begun to use the folder",
			"store/filestore.nap":                         "lets another process write that keeps losing",
			"store/recordstore.Wait":                      "before it asks an engine again that gave no answer",
			"store/recordstore.giveWay":                   "leaves a record to other clients now and then",
			"store/recordstore.pause":                     "gets contenders out of step",
			"store/redisstore/internal/route.Follow":      "asks the sentinels for the master",
			"store/redisstore/internal/route.refreshLoop": "asks for the slot map while there are waiters",
			"store/redisstore/redisadmin.run":             "until the leases of the old membership have expired",
			"store/zkstore.listen":                        "before breaks are followed in another session",
			"store/zkstore.open":                          "before servers are asked again that do not answer",
			"store/zkstore.run":                           "before a failed request is repeated",
			"store/zkstore/internal/zk.leave":             "until the server has ended the session",
			"store/zkstore/internal/zk.serve":             "keeps the session alive",
			"store/zkstore/internal/zk.run":               "before the servers are asked again that do not serve",
		},
		choices:    map[string]string{"store/redisstore": "Topology", "store/redisstore/internal/node": "Topology", "store/redisstore/internal/fleet": "Topology", "store/redisstore/internal/route": "Topology"},
		replies:    []string{"store/redisstore", "cmd/leasehold/internal/doctor"},
		translator: "store/redisstore/internal/resp",
	},
}
