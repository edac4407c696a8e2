package cli

// The package knows how to open the URLs of redis, sentinels and clusters.
import _ "github.com/leasehold-dev/leasehold/store/redisstore"

var redisScheme = scheme{
	names: []string{"redis", "rediss", "unix"},
	usage: "redis://USER:PASSWORD@HOST:PORT,HOST:PORT.../DB?node_timeout=50ms",
	help: `Redis, for locks between machines. With several independent servers the
majority decides (Redlock), and fewer than half of them may fail.
rediss:// is the same over TLS, and unix:///PATH is one server's unix socket.`,
}
