package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	// The drivers of sqlstore.
	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/leasehold-dev/leasehold/store"
)

// scheme is one kind of store that a URL can name, as far as the command describes
// it. store.Open opens it.
type scheme struct {
	names []string
	usage string // how to write it, in the help
	help  string
	// single: one URL names the whole store.
	single bool
	// refused says why the command does not open such a store; nil: it does.
	refused error
}

// open opens the store that a URL of the scheme names.
func (s scheme) open(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
	if s.refused != nil {
		return nil, s.refused
	}
	return store.Open(ctx, url, &o)
}

// schemes are all kinds of stores, in the order of the help. To add one to the command, add it here
// and to examiners, which imports its package.
var schemes = []scheme{fileScheme, redisScheme, sentinelScheme, clusterScheme, postgresqlScheme, mysqlScheme, etcdScheme, zookeeperScheme, natsScheme, s3Scheme, gcsScheme, azureScheme, kubernetesScheme, remoteScheme, memoryScheme}

// storesHelp is the topic of stores.
func storesHelp() string {
	var b strings.Builder
	b.WriteString(`The first of these that is given says where the locks are kept:
  --store URL            all users of a machine can see arguments: put a password elsewhere
  --store-file FILE      a file with the URL; several lines name the nodes of one store
  LEASEHOLD_STORE        a variable with the URL
  LEASEHOLD_STORE_FILE   a variable with the path of such a file
Without them it is a folder of files of your own, on this machine.

`)
	for i, s := range schemes {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s\n", s.usage)
		for line := range strings.SplitSeq(s.help, "\n") {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func init() {
	// The driver logs only what it also returns as an error.
	_ = mysql.SetLogger(&mysql.NopLogger{}) // fails for nil only
}

var fileScheme = scheme{
	names: []string{"file"},
	usage: "file, file:DIR, file:DIR?shared=true",
	help: `A folder of files, for locks between the processes of one machine. Without a
DIR it is a folder of your own, which other users do not share. The parent
of any other folder has to exist. A folder for several users has to be writable
by them and needs shared=true. In DIR write %25 for % and %3F for ?.`,
	single: true,
}

var redisScheme = scheme{
	names: []string{"redis", "rediss", "unix"},
	usage: "redis://USER:PASSWORD@HOST:PORT,HOST:PORT.../DB?node_timeout=50ms",
	help: `Redis, for locks between machines. With several independent servers the
majority decides (Redlock), and fewer than half of them may fail.
rediss:// is the same over TLS, and unix:///PATH is one server's unix socket.`,
}

var sentinelScheme = scheme{
	names: []string{"redis-sentinel", "rediss-sentinel"},
	usage: "redis-sentinel://USER:PASSWORD@SENTINEL:PORT,SENTINEL:PORT.../DB?master=NAME",
	help: `A Redis master watched by sentinels, which say where it is. A failover can
lose a lock, so --require crash-safe is refused; several independent servers
(redis://) lose none. USER, PASSWORD and DB are those of the master;
sentinel_username and sentinel_password are those of the sentinels, if they
have their own. rediss-sentinel:// is the same over TLS.`,
}

var clusterScheme = scheme{
	names: []string{"redis-cluster", "rediss-cluster"},
	usage: "redis-cluster://USER:PASSWORD@HOST:PORT,HOST:PORT...?node_timeout=50ms",
	help: `A Redis Cluster; name any of its servers. Each lock is kept by the master
of its slot. A replica that takes over may not know the latest locks, so the
guarantee is weaker than that of several servers with redis://.
rediss-cluster:// is the same over TLS.`,
}

var postgresqlScheme = scheme{
	names: []string{"postgres", "postgresql"},
	usage: "postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?schema=leasehold",
	help: `A PostgreSQL database, for locks between machines. "leasehold schema" makes
their table once. Several hosts are one server and its standbys:
add target_session_attrs=read-write. Other settings are those of the driver,
pgx, such as sslmode=verify-full.`,
	single: true,
}

var mysqlScheme = scheme{
	names: []string{"mysql", "mariadb"},
	usage: "mysql://USER:PASSWORD@HOST:PORT/?schema=leasehold",
	help: `A MySQL or MariaDB server, for locks between machines. "leasehold schema" makes
a database with their table once. socket=/PATH connects to a socket.
Other settings are those of the driver, go-sql-driver/mysql, such as tls=true.`,
	single: true,
}

var etcdScheme = scheme{
	names: []string{"etcd", "etcds"},
	usage: "etcd://USER:PASSWORD@HOST:PORT,HOST:PORT,HOST:PORT/PREFIX?timeout=5s",
	help: `An etcd cluster, for locks between machines: name all its voting members. The lock
NAME is that of "etcdctl lock PREFIX/NAME"; PREFIX is leasehold unless you give
another. etcds is etcd with TLS; ca=FILE trusts the certificates in a file, and
cert=FILE&key=FILE are those of the client.`,
	single: true,
}

var zookeeperScheme = scheme{
	names: []string{"zookeeper"},
	usage: "zookeeper://USER:PASSWORD@HOST:PORT,HOST:PORT/leasehold?reader=SCHEME:ID&max_ttl=20s",
	help: `A ZooKeeper ensemble, for locks between machines that Curator and go-zookeeper
also use. /leasehold is the node below which locks are kept. USER and PASSWORD are
an identity of scheme digest; "leasehold acl" prints the ACL. reader
may look at new locks. If the servers set minSessionTimeout, add their tickTime as
tick=2s. The TTL is at most maxSessionTimeout, less three ticks.`,
	single: true,
}

var natsScheme = scheme{
	names: []string{"nats"},
	usage: "nats://USER:PASSWORD@HOST:PORT,HOST:PORT,HOST:PORT/BUCKET?sync=always",
	help: `NATS JetStream, for locks between machines. BUCKET names the stream, and is "default"
unless you give another. Say sync=always if every server has sync_interval: always;
otherwise a server that loses power may forget locks. tls=true, ca=FILE, cert=FILE,
key=FILE and creds=FILE log in.`,
	single: true,
}

var s3Scheme = scheme{
	names: []string{"s3"},
	usage: "s3://BUCKET/PREFIX?region=REGION",
	help: `A bucket of S3, for jobs and elections: waiters look once a second, and each look costs
money. Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the shared
configuration (profile=NAME) or the machine. For another server say
endpoint=https://HOST:PORT, and durable=true if its writes outlive a crash. With
skew=1m, a job that tries once can get the lock of a dead holder.`,
	single: true,
}

var gcsScheme = scheme{
	names: []string{"gs"},
	usage: "gs://BUCKET/PREFIX",
	help: `A bucket of Google Cloud Storage, for jobs and elections: waiters look once in two
seconds, each look costs money, and a lock changes at most once a second. Credentials
are the file that GOOGLE_APPLICATION_CREDENTIALS names, the login of gcloud, or the
machine's service account. With skew=1m, a job that tries once can get the lock of a
dead holder.`,
	single: true,
}

var azureScheme = scheme{
	names: []string{"azblob"},
	usage: "azblob://CONTAINER/PREFIX?account=ACCOUNT",
	help: `A container of Azure Blob Storage, for jobs and elections: waiters look once a second,
and each look costs money. Credentials are AZURE_STORAGE_KEY, or a login to Entra ID:
that of an application, of az, or of the machine. With skew=1m, a job that tries once
can get the lock of a dead holder.`,
	single: true,
}

var kubernetesScheme = scheme{
	names: []string{"kubernetes"},
	usage: "kubernetes://NAMESPACE?context=CONTEXT",
	help: `Lease objects in a namespace of Kubernetes, which exclude leader elections of client-go
with the same name. Credentials are those of the pod's service account, or of a kubeconfig:
kubeconfig=FILE, or the one that KUBECONFIG names. "leasehold acl" prints the Role. With
skew=1m, a job that tries once can get the lock of a dead holder.`,
	single: true,
}

var remoteScheme = scheme{
	names: []string{"https", "http"},
	usage: "https://HOST:PORT,HOST:PORT/PREFIX?token_file=FILE",
	help: `One or several servers ("leasehold serve") in front of one store, whatever that is. The
token can also be in LEASEHOLD_TOKEN. ca=FILE, cert=FILE and key=FILE say which servers
to trust and log in. http:// is for this machine only.`,
	single: true,
}

var memoryScheme = scheme{
	names: []string{"memory"},
	usage: "memory:",
	help: `The memory of one process, for programs that use the library. This command
refuses it, since its locks would exclude nobody.`,
	refused: errors.New("memory: keeps locks in the memory of one process, so this command would exclude nobody: use file, for locks between all processes of this machine"),
}
