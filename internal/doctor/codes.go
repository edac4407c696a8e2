package doctor

import "slices"

// Code names what kind of finding one is. Codes are a contract with programs:
// some may be added, none changes its meaning. docs/doctor.md explains each.
type Code string

// The codes about servers.
const (
	NoQuorum            Code = "no-quorum"
	NodeUnreachable     Code = "node-unreachable"
	NodeSilent          Code = "node-silent"
	LoginRefused        Code = "login-refused"
	NodeLoading         Code = "node-loading"
	SameServer          Code = "same-server"
	SameHost            Code = "same-host"
	EvenNodes           Code = "even-nodes"
	ServerTooOld        Code = "server-too-old"
	Replica             Code = "replica"
	Replicated          Code = "replicated"
	Sentinel            Code = "sentinel"
	SentinelSilent      Code = "sentinel-silent"
	SentinelsDisagree   Code = "sentinels-disagree"
	Cluster             Code = "cluster"
	NoCluster           Code = "no-cluster"
	SlotsUnserved       Code = "slots-unserved"
	Eviction            Code = "eviction"
	MemoryFull          Code = "memory-full"
	MemoryLow           Code = "memory-low"
	RightMissing        Code = "right-missing"
	KeyForbidden        Code = "key-forbidden"
	ScriptFails         Code = "script-fails"
	WaitersPoll         Code = "waiters-poll"
	TTLOverMaximum      Code = "ttl-over-maximum"
	TTLTooShort         Code = "ttl-too-short"
	RoundTripOver       Code = "round-trip-over-timeout"
	RoundTripNear       Code = "round-trip-near-timeout"
	ClocksDiffer        Code = "clocks-differ"
	ClockHere           Code = "clock-here"
	OtherList           Code = "other-list"
	ListsReplaced       Code = "list-being-replaced"
	OtherVersion        Code = "other-version"
	Quarantined         Code = "quarantined"
	RestartedRecently   Code = "restarted-recently"
	RestartUnseen       Code = "restart-unseen"
	FsyncNotAlways      Code = "fsync-not-always"
	PersistenceFailing  Code = "persistence-failing"
	PersistenceNone     Code = "persistence-none"
	PersistenceSnapshot Code = "persistence-snapshots"
	PersistenceEverySec Code = "persistence-everysec"
	PersistenceUnknown  Code = "persistence-unknown"
	InfoForbidden       Code = "info-forbidden"
	ConfigForbidden     Code = "config-forbidden"
)

// The codes about keys on servers.
const (
	LockWithoutTTL      Code = "lock-without-ttl"
	LockOfWrongType     Code = "lock-of-wrong-type"
	RedissonLock        Code = "redisson-lock"
	ForeignLock         Code = "foreign-lock"
	ForeignCounter      Code = "foreign-counter"
	CounterWithoutTTL   Code = "counter-without-ttl"
	TombstoneWithoutTTL Code = "tombstone-without-ttl"
	KeysNotSeen         Code = "keys-not-seen"
	KeysPartlySeen      Code = "keys-partly-seen"
)

// The codes about stores without a server.
const (
	FileOnNetwork Code = "file-on-network"
	FileExposed   Code = "file-exposed"
	FileUnusable  Code = "file-unusable"
	FileDiskLow   Code = "file-disk-low"
	FileShared    Code = "file-shared"
	FileNotLogged Code = "file-not-logged"
	FileMissing   Code = "file-missing"
	MemoryOnly    Code = "memory-of-one-process"
)

// advice says what to do, by code.
var advice = map[Code]string{
	NoQuorum:            "Mend the nodes named in the other findings, until a majority takes part.",
	NodeUnreachable:     "Start the server, or mend the address, the network or the firewall between.",
	NodeSilent:          "See whether the server is stopped, swapping or busy with a slow command, and whether a firewall drops packets.",
	LoginRefused:        "Check the user name and the password in the URL; \"leasehold acl\" prints a rule for a user.",
	NodeLoading:         "Wait until the server has read its data.",
	SameServer:          "List each server once.",
	SameHost:            "Put the servers on machines that do not fail together.",
	EvenNodes:           "Use one server less, or one more.",
	ServerTooOld:        "Use Redis 5 or newer, or Valkey.",
	Replica:             "List the master instead, or see what the sentinels that name it are doing; better, an independent server without replicas.",
	Replicated:          "For more safety use three or five independent servers without replicas. With one, never promote a replica within the maximum TTL of the last grant; if sentinels may, check the tokens where the data lives.",
	Sentinel:            "List the servers that keep data, independent ones, which no sentinel fails over. Or, with its weaker guarantee, name the sentinels as redis-sentinel://HOST,HOST...?master=NAME.",
	SentinelSilent:      "Mend what is said, or take the sentinel out of the URL if it is no more.",
	SentinelsDisagree:   "Look again in a few seconds. If it stays so, mend the network between the sentinels, or the configuration of those that are behind.",
	Cluster:             "Give the store as redis-cluster://, or use independent servers that are not part of a cluster.",
	NoCluster:           "Give the store as redis://, or name a server of the cluster.",
	SlotsUnserved:       "Give the slots to a server (CLUSTER ADDSLOTS), or mend the master that had them.",
	Eviction:            "CONFIG SET maxmemory-policy noeviction, and the same in the server's configuration file.",
	MemoryFull:          "Free memory on the server, or raise maxmemory.",
	MemoryLow:           "Free memory on the server, or raise maxmemory, before it is full: then it takes no more locks.",
	RightMissing:        "Give the user the right; \"leasehold acl\" prints the whole rule.",
	KeyForbidden:        "Give the user the pattern (\"leasehold acl\" prints the whole rule), or, if its locks have names with a common beginning, say so with --prefix.",
	ScriptFails:         "Mend what the server says.",
	WaitersPoll:         "Give the user the right to publish and to listen (\"leasehold acl\" prints the whole rule), and let nothing be between that knows no channels.",
	TTLOverMaximum:      "Use a shorter TTL, or raise max_ttl in the URL, for every client of this store.",
	TTLTooShort:         "Use a longer TTL, or servers that are nearer.",
	RoundTripOver:       "Raise node_timeout in the URL, for all clients, or use servers that are nearer.",
	RoundTripNear:       "Raise node_timeout in the URL, for all clients, or find out what slows the server down.",
	ClocksDiffer:        "Let NTP run on all servers, slewing the clock and not stepping it.",
	ClockHere:           "Let NTP run here and on the servers.",
	OtherList:           "Give all clients the same list. To replace one list by another see \"leasehold replace --help\".",
	ListsReplaced:       "When all clients have both lists, run \"leasehold replace\".",
	OtherVersion:        "Use one version of Leasehold everywhere. When all clients of the other one have ended, run \"leasehold bootstrap\".",
	Quarantined:         "Wait. If it is certain that nobody holds a lock, \"leasehold bootstrap\" ends it at once.",
	RestartedRecently:   "Wait for the time said before trusting that nobody else holds a lock.",
	RestartUnseen:       "Nothing has to be done. If it is certain that nobody holds a lock, \"leasehold bootstrap\" lets the node take part at once.",
	FsyncNotAlways:      "Set appendonly yes and appendfsync always on the server, or take fsync=always out of the URL.",
	PersistenceFailing:  "See the server's log: usually the disk is full, or a directory is not writable.",
	PersistenceNone:     "Set appendonly yes and appendfsync always, or use three or five independent servers.",
	PersistenceSnapshot: "Set appendonly yes and appendfsync always, or use three or five independent servers.",
	PersistenceEverySec: "Set appendfsync always, or use three or five independent servers.",
	PersistenceUnknown:  "Let the user read the configuration (\"leasehold acl --for doctor\"), or see for yourself: appendfsync always is what loses nothing.",
	InfoForbidden:       "Give the user +info; \"leasehold acl\" prints the whole rule.",
	ConfigForbidden:     "Give the user +config|get if this is to be checked (\"leasehold acl --for doctor\").",
	LockWithoutTTL:      "Find out who made the key, and delete it if nobody relies on it: until then the lock cannot be taken.",
	LockOfWrongType:     "Give the locks other names, or delete the keys if nobody needs them.",
	RedissonLock:        "Use one of the two libraries for a name. They exclude each other, but Redisson does not wait: it throws an exception while Leasehold has the lock.",
	ForeignLock:         "Nothing has to be done: both kinds of clients exclude each other. Their leases have no fencing token.",
	ForeignCounter:      "Do not name a lock like that, or move what is there.",
	CounterWithoutTTL:   "If the key is the counter of a lock, PEXPIRE it in a day's milliseconds, 86400000, and find out who took its expiry away. If not, do not name a lock like that.",
	TombstoneWithoutTTL: "PEXPIRE the keys in max_ttl, and find out who took their expiry away.",
	KeysNotSeen:         "Give the user +scan if this is to be checked (\"leasehold acl --for doctor\").",
	KeysPartlySeen:      "Look at fewer keys, with --prefix.",
	FileOnNetwork:       "Put the file on a disk of this machine, or use a server for locks between machines.",
	FileExposed:         "Take the rights away from others; if the file is shared on purpose, say so with shared=true in its URL.",
	FileUnusable:        "Mend what is said, or name another file.",
	FileDiskLow:         "Free space on the disk.",
	FileShared:          "Nothing has to be done if all who can write the file may do that.",
	FileNotLogged:       "Nothing has to be done: the first use changes it. Find out which other program opens the file.",
	FileMissing:         "Nothing has to be done.",
	MemoryOnly:          "Between processes use \"file\", between machines a server.",
}

// adviceForSeveral takes the place of advice where the majority of several
// independent servers decides already.
var adviceForSeveral = map[Code]string{
	Replica:             "List its master instead, or another server that has none: each server of the list must be a master without replicas.",
	Replicated:          "Remove the replicas: the other servers of the list are there for the loss of one. Until then never promote a replica within the maximum TTL of the last grant.",
	Sentinel:            "List the servers that keep data, which no sentinel fails over.",
	Cluster:             "List servers that are not part of a cluster.",
	PersistenceNone:     "Nothing has to be done. With appendonly yes and appendfsync always, a server that was restarted takes part again at once.",
	PersistenceSnapshot: "Nothing has to be done. With appendonly yes and appendfsync always, a server that was restarted takes part again at once.",
	PersistenceEverySec: "Nothing has to be done. With appendfsync always, a server that was restarted takes part again at once.",
}

// Codes are all codes there are, in the order in which findings of the same
// severity are told.
func Codes() []Code { return slices.Clone(codes) }

var codes = []Code{
	NoQuorum, NodeUnreachable, NodeSilent, LoginRefused, NodeLoading, SameServer, Replica, Sentinel, Cluster, NoCluster, SlotsUnserved,
	ServerTooOld, Eviction, MemoryFull, RightMissing, KeyForbidden, ScriptFails, TTLOverMaximum, RoundTripOver,
	LockWithoutTTL, LockOfWrongType, RedissonLock,
	OtherList, OtherVersion, FileOnNetwork, FileExposed, FileUnusable,
	SentinelsDisagree, FsyncNotAlways, Quarantined, RestartedRecently, Replicated, SentinelSilent, SameHost, EvenNodes, MemoryLow, PersistenceFailing,
	TTLTooShort, RoundTripNear, WaitersPoll, ClocksDiffer, ClockHere,
	PersistenceNone, PersistenceSnapshot, PersistenceEverySec, PersistenceUnknown,
	ForeignCounter, CounterWithoutTTL, TombstoneWithoutTTL, FileDiskLow,
	ListsReplaced, RestartUnseen, ForeignLock, InfoForbidden, ConfigForbidden, KeysNotSeen, KeysPartlySeen,
	FileShared, FileNotLogged, FileMissing, MemoryOnly,
}
