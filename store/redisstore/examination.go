package redisstore

import (
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Examination is what Examine found out about the servers of a store: facts,
// from which somebody else draws conclusions.
type Examination struct {
	// Nodes has one entry per server, in the order of the URLs.
	Nodes []Examined
	// Lists are the lists of nodes that decide, by index: one, or two while one
	// replaces the other. A majority of each has to agree.
	Lists [][]int
	// Sentinels are what those that watch the server say, in the order of the URLs;
	// nil where there are none.
	Sentinels []SentinelSays
	// TTL is the one that was asked about, MaxTTL the longest that the store
	// accepts, and NodeTimeout how long a node is waited for at that TTL.
	TTL, MaxTTL, NodeTimeout time.Duration
	// Quarantine is how long a server that may have forgotten leases stays out,
	// and FsyncAlways what Options said of the servers.
	Quarantine  time.Duration
	FsyncAlways bool
}

// Examined is one server. What could not be read is zero, with an error beside
// it that says why.
type Examined struct {
	// Node is its address as the URLs have it, without credentials; Host the
	// machine that answered there, as an IP address.
	Node, Host string
	// Outcome is Granted when the server let us in. Otherwise Err says why not,
	// and nothing below is set.
	Outcome store.Outcome
	Err     error
	// Trip is the median time of a request and its answer, Slowest the longest.
	Trip, Slowest time.Duration
	// Ahead is how far the server's time of day is ahead of this machine's; it
	// is known only to within AheadError.
	Ahead, AheadError time.Duration
	Server            Server
	ServerErr         error
	Mark              Mark
	// Lacking is what the user may not do. If it is empty, every script was run
	// on a lock that nobody uses, and Failing says which did not work.
	Lacking []Lack
	Failing []Failure
	// UntoldErr is why those who wait for a lock could not be told when it is their
	// turn, as it was tried; nil if they can.
	UntoldErr error
	Keys      Survey
}

// Server is what a server says of itself.
type Server struct {
	// Product is "redis" or "valkey", Version that of the Redis it is or is
	// compatible with.
	Product, Version string
	RunID            string // new at every start
	Uptime           time.Duration
	// Mode is "standalone", "cluster" or "sentinel".
	Mode    string
	Loading bool // it still reads its data
	// Replica is set for one, and where each replicates to the other; Master is
	// then whose. Replicas is how many it has.
	Replica  bool
	Master   string
	Replicas int
	// Memory it uses and may use, in bytes; MaxMemory is zero for no limit.
	Memory, MaxMemory, SystemMemory uint64
	// Eviction is what it does at the limit; Evicted how many keys it has
	// removed for that since it started.
	Eviction string
	Evicted  uint64
	// AppendOnly says that it writes a log. Fsync is when that is on disk:
	// "always", "everysec", "no", followed by ", no-appendfsync-on-rewrite yes" if it is not
	// while the log is rewritten. Snapshots says that it saves all data now and
	// then. The last two come from its configuration: SettingsErr says why they
	// are not known.
	AppendOnly  bool
	Fsync       string
	Snapshots   bool
	SettingsErr error
	// SaveFails says that its last attempt to write to disk did not succeed.
	SaveFails bool
}

// Mark is the note on a server that says from when on it takes part, made by
// the first client that connects after the server started.
type Mark struct {
	// Found says that there is one. RunID is the run of the server that it was
	// said of, "-" if no client could tell.
	Found bool
	RunID string
	// Why it was made, in words.
	Why string
	// Others is set if the server decides together with others than those of the
	// URLs, and so refuses this list: which, for people.
	Others string
	// Shut says that the server is in quarantine, for OpensIn; zero: until the next
	// client comes.
	Shut    bool
	OpensIn time.Duration
	// Durable says that all clients saw the server append every write to a file before
	// it answered, when they arrived.
	Durable bool
	// Err is why it could not be read, and Version that of the mark if another version of
	// Leasehold wrote it: the server is then not used.
	Err     error
	Version string
}

// Lack is a permission that locks need and the user of the URL does not have.
type Lack struct {
	// Command as an ACL rule names it, in lower case; or Key, a pattern.
	Command, Key string
	// Says is the server's refusal.
	Says string
}

// Failure is a script that does not work although nothing is lacking.
type Failure struct {
	Script string
	Err    error
}

// Oddity is what is odd about a key.
type Oddity uint8

// The oddities. Keys of locks are known by their token counters; if a prefix was
// given, every key that begins with it counts as one too.
const (
	// Endless is the key of a lock that never expires.
	Endless Oddity = iota
	// WrongType is the key of a lock that holds no string.
	WrongType
	// Redisson is a lock of Redisson, which is a hash.
	Redisson
	// Foreign is a lock of another client that excludes ours and is excluded.
	Foreign
	// ForeignCounter is no number where the lock's tokens are counted.
	ForeignCounter
	// EndlessCounter and EndlessTombstone never expire, which ours do.
	EndlessCounter
	EndlessTombstone
)

// Survey is what is odd about the keys of locks on one server.
type Survey struct {
	// Locks is how many names of locks were looked at.
	Locks int
	// Partial says that there were too many keys, or it took too long, to see
	// them all. Err is why they could not be looked at.
	Partial bool
	Err     error
	Odd     []OddKeys
}

// OddKeys are those that are odd in one way.
type OddKeys struct {
	Oddity Oddity
	Count  int
	// Examples are some of them; Says what is known of each besides.
	Examples []OddKey
}

// OddKey is one of them.
type OddKey struct{ Key, Says string }
