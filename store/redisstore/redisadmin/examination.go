package redisadmin

import (
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Examination holds what Examine found out about the servers of a store. It contains
// facts only; the caller draws the conclusions.
type Examination struct {
	// Nodes has one entry per server, in the order of the URLs.
	Nodes []Examined
	// Memberships holds the memberships that decide, as indexes into Nodes: one, or two while
	// one replaces the other. A majority of each has to agree.
	Memberships [][]int
	// Sentinels holds the reply of each sentinel, in the order of the URLs. It is nil if
	// there are no sentinels.
	Sentinels []SentinelSays
	// TTL is the TTL that was asked about, MaxTTL the longest one that quarantines allow for,
	// and NodeTimeout how long a client waits for a node at TTL. Limited is set if the store
	// accepts no longer TTL than MaxTTL.
	TTL, MaxTTL, NodeTimeout time.Duration
	Limited                  bool
	// Quarantine is how long a server that may have forgotten leases grants nothing.
	// FsyncAlways is the value from Options.
	Quarantine  time.Duration
	FsyncAlways bool
}

// Examined describes one server. A value that could not be read is zero, and an error
// field beside it says why.
type Examined struct {
	// Node is the server's address as in the URLs, without credentials. Host is the IP
	// address of the machine that answered.
	Node, Host string
	// Outcome is store.Granted if the server accepted the connection. Otherwise Err says
	// why not, and all fields below are zero.
	Outcome store.Outcome
	Err     error
	// Trip is the median round-trip time, and Slowest the longest.
	Trip, Slowest time.Duration
	// Ahead is how far the server's wall clock is ahead of this machine's, with an error
	// of at most AheadError.
	Ahead, AheadError time.Duration
	Server            Server
	ServerErr         error
	Mark              Mark
	// Lacking lists the permissions that the user does not have. If it is empty, every
	// script was tried on an unused lock, and Failing lists those that failed.
	Lacking []Lack
	Failing []Failure
	// PushErr is why waiters could not receive pushes in a trial; nil if they can.
	PushErr error
	// TrackingErr is why clients could not be notified that the server's data was replaced,
	// as by REPLICAOF; nil if they can, or if no client asks for it: in a cluster, and
	// where sentinels find the server.
	TrackingErr error
	Keys        Survey
}

// Server holds what a server reports about itself.
type Server struct {
	// Version is that of Redis, or of the Redis version that the server is compatible with.
	Version string
	RunID   string // changes at every start
	Uptime  time.Duration
	// Mode is "standalone", "cluster" or "sentinel".
	Mode    string
	Loading bool // the server is still reading its data
	// Replica is set for a replica, including one that also replicates back to its
	// master. Master is then the address of its master. Replicas counts its own replicas.
	Replica  bool
	Master   string
	Replicas int
	// Memory is the memory in use and MaxMemory the limit, in bytes. A MaxMemory of zero
	// means no limit.
	Memory, MaxMemory, SystemMemory uint64
	// Eviction is the policy at the memory limit. Evicted counts the keys evicted since
	// the server started.
	Eviction string
	Evicted  uint64
	// AppendOnly is set if the server writes an append-only file. Fsync is when the file
	// is synced: "always", "everysec" or "no", followed by ", no-appendfsync-on-rewrite
	// yes" if it is not synced while it is rewritten. Snapshots is set if the server
	// regularly saves all its data. Fsync and Snapshots come from the server's
	// configuration: SettingsErr is why they could not be read.
	AppendOnly  bool
	Fsync       string
	Snapshots   bool
	SettingsErr error
	// SaveFails is set if the server's last attempt to write to disk failed.
	SaveFails bool
}

// Mark is the note on a server that says whether it may grant locks. The first client
// that connects after the server starts writes it.
type Mark struct {
	// Found is set if the server has a mark. RunID is the run of the server that the mark
	// is about, or "-" if no client could read it.
	Found bool
	RunID string
	// Why is the reason for the last quarantine, as a sentence.
	Why string
	// Others describes the membership that the server belongs to, if it differs from the
	// one of the URLs: the server then refuses this client.
	Others string
	// UsedAlone describes the client that uses the server alone, if one does, and the server
	// does not belong to the membership of the URLs: it does not become one of several then.
	UsedAlone string
	ours      bool // it names the membership of the URLs
	// Quarantined is set if the server is in quarantine, for OpensIn more. If OpensIn is zero,
	// the next client to connect ends the quarantine.
	Quarantined bool
	OpensIn     time.Duration
	// Durable is set if every client saw, when it connected, that the server appends
	// every write to a file before answering.
	Durable bool
	// Err is why the mark could not be read. Version is set if another version of
	// Leasehold wrote the mark: this client then refuses the server.
	Err     error
	Version string
}

// Lack is a permission that locks need and the user does not have.
type Lack struct {
	// Command is the command as an ACL rule names it, in lower case. If it is empty, Key
	// is a key pattern.
	Command, Key string
	// Says is the server's refusal.
	Says string
}

// Failure is a script that fails although no permission is missing.
type Failure struct {
	Script string
	Err    error
}

// Oddity is a way in which a key is unusual.
type Oddity uint8

// The oddities. Locks are found by their token counters. If a prefix was given, every key
// that begins with it also counts as a lock.
const (
	// Endless is a lock's key that never expires.
	Endless Oddity = iota
	// WrongType is a lock's key that does not hold a string.
	WrongType
	// Redisson is a lock of Redisson, which is a hash.
	Redisson
	// Foreign is a lock of another client. It excludes our locks, and they exclude it.
	Foreign
	// ForeignCounter is a token counter that does not hold a number.
	ForeignCounter
)

// Survey lists the unusual keys of locks on one server.
type Survey struct {
	// Locks counts the names that were examined.
	Locks int
	// Partial is set if the survey stopped early because there were too many keys or it
	// took too long. Err is why the keys could not be examined.
	Partial bool
	Err     error
	Odd     []OddKeys
}

// OddKeys are the keys with one oddity.
type OddKeys struct {
	Oddity Oddity
	Count  int
	// Examples holds some of the keys.
	Examples []OddKey
}

// OddKey is one unusual key, with what is known about it.
type OddKey struct{ Key, Says string }
