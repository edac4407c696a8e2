package store

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
)

// OpenOptions are the options of Open that are the same for every kind of store.
// All others are in the URL.
type OpenOptions struct {
	// Logger receives what an operator should know, such as servers that fail and
	// recover, or clean-up that failed. Nil: nothing is logged.
	Logger *slog.Logger
	// Partial is for programs that only look. If some servers answer, and too few for a lock,
	// Open returns a store nevertheless, whose Inspect and List say what these servers know.
	Partial bool
}

// Open opens the store that a URL names, such as
//
//	etcd://a:2379,b:2379,c:2379/prefix
//	redis://user:password@a:6379,b:6379,c:6379?max_ttl=60s
//	file:/var/lib/app/locks
//	memory:
//
// The scheme selects the kind of store. The packages azblobstore, memstore, etcdstore, filestore,
// gcsstore, kubernetesstore, natsstore, redisstore, remotestore, s3store, sqlstore and zkstore describe their URLs, and
// register the schemes when a program imports them, if only for that:
//
//	import _ "github.com/leasehold-dev/leasehold/store/redisstore"
//
// A list of servers is part of the URL. If servers need a URL each, because their
// passwords differ, url holds all of them, separated by white space.
//
// Open blocks as the package's own function does, and returns its errors. If the
// URL is wrong, the error matches ErrInvalid. If no imported package knows the
// scheme, it matches ErrUnsupported and names the schemes that are known, and the
// import to add. A nil o means the defaults. The caller closes the store. Open may
// be called from several goroutines.
func Open(ctx context.Context, url string, o *OpenOptions) (*Store, error) {
	if o == nil {
		o = &OpenOptions{}
	}
	open := opener(Scheme(url))
	if open == nil {
		return nil, unknownScheme(url)
	}
	return open(ctx, url, *o)
}

// OpenFunc opens the store that a URL names; see Open. It must be safe for
// concurrent use.
type OpenFunc func(ctx context.Context, url string, o OpenOptions) (*Store, error)

// Register makes Open call open for URLs of a scheme, which is given without its
// colon. Packages of stores call it in their init functions. It panics if the
// scheme is registered already.
func Register(scheme string, open OpenFunc) {
	openers.Lock()
	defer openers.Unlock()
	if openers.byScheme[scheme] != nil {
		panic("store: the scheme " + scheme + " is registered twice")
	}
	if openers.byScheme == nil {
		openers.byScheme = make(map[string]OpenFunc)
	}
	openers.byScheme[scheme] = open
}

// Schemes returns the schemes that Open knows in this program, sorted and without
// colons.
func Schemes() []string {
	openers.Lock()
	defer openers.Unlock()
	return slices.Sorted(maps.Keys(openers.byScheme))
}

// Scheme returns the scheme of a URL: what comes before its first colon, or all of
// it if there is none.
func Scheme(url string) string {
	scheme, _, _ := strings.Cut(strings.TrimSpace(url), ":")
	return scheme
}

var openers struct {
	sync.Mutex
	byScheme map[string]OpenFunc
}

func opener(scheme string) OpenFunc {
	openers.Lock()
	defer openers.Unlock()
	return openers.byScheme[scheme]
}

// packages are the packages of this module that know a scheme, to be named in
// errors of programs that import none.
var packages = map[string]string{
	"azblob":         "azblobstore",
	"etcd":           "etcdstore",
	"etcds":          "etcdstore",
	"file":           "filestore",
	"gs":             "gcsstore",
	"http":           "remotestore",
	"https":          "remotestore",
	"kubernetes":     "kubernetesstore",
	"mariadb":        "sqlstore",
	"memory":         "memstore",
	"mysql":          "sqlstore",
	"nats":           "natsstore",
	"postgres":       "sqlstore",
	"postgresql":     "sqlstore",
	"redis":          "redisstore",
	"unix":           "redisstore",
	"rediss":         "redisstore",
	"s3":             "s3store",
	"redis-sentinel": "redisstore", "rediss-sentinel": "redisstore",
	"zookeeper":     "zkstore",
	"redis-cluster": "redisstore", "rediss-cluster": "redisstore",
}

// unknownScheme names the scheme only if it is certainly one: any other text may be a
// mistyped secret.
func unknownScheme(url string) error {
	scheme := Scheme(url)
	if p := packages[scheme]; p != "" {
		return fmt.Errorf("%w: no package for %s: URLs is part of this program: add import _ %q", ErrUnsupported, scheme, "github.com/leasehold-dev/leasehold/store/"+p)
	}
	what := "unknown store"
	if name, _, ok := strings.Cut(url, "://"); ok && !strings.ContainsAny(name, ":@/ ") {
		what = fmt.Sprintf("unknown store %q", name+"://")
	}
	known := Schemes()
	if len(known) == 0 {
		return fmt.Errorf("%w: %s: import the package of a store, such as %q", ErrUnsupported, what, "github.com/leasehold-dev/leasehold/store/redisstore")
	}
	return fmt.Errorf("%w: %s: a store's URL begins with one of %s:, or import the package of another store", ErrUnsupported, what, strings.Join(known, ":, "))
}
