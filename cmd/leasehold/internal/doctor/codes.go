package doctor

import "slices"

// Code identifies a kind of finding. Programs may rely on codes: new ones may be
// added, but none changes its meaning. docs/doctor.md explains each.
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
	ReplacementUnseen   Code = "replacement-unseen"
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
	FileMissing   Code = "file-missing"
	MemoryOnly    Code = "memory-of-one-process"
	BehindServer  Code = "behind-server"
)

// The codes about databases.
const (
	DatabaseUnusable   Code = "database-unusable"
	DatabaseNotDurable Code = "database-not-durable"
	DatabasePooled     Code = "database-pooled"
)

// The codes about etcd.
const (
	EtcdUnusable       Code = "etcd-unusable"
	EtcdNoLeader       Code = "etcd-no-leader"
	EtcdAlarm          Code = "etcd-alarm"
	EtcdNotSafe        Code = "etcd-not-safe"
	EtcdFewMembers     Code = "etcd-few-members"
	EtcdMembersUnnamed Code = "etcd-members-unnamed"
	EtcdMemberDown     Code = "etcd-member-down"
	EtcdLearner        Code = "etcd-learner"
	EtcdSlow           Code = "etcd-slow"
	EtcdUncompacted    Code = "etcd-uncompacted"
	EtcdRestored       Code = "etcd-restored"

	NATSUnusable      Code = "nats-unusable"
	NATSNotSynced     Code = "nats-not-synced"
	NATSSyncWrong     Code = "nats-sync-wrong"
	NATSSyncUnseen    Code = "nats-sync-unseen"
	NATSFewReplicas   Code = "nats-few-replicas"
	NATSReplicaBehind Code = "nats-replica-behind"
	NATSSlow          Code = "nats-slow"

	S3Unusable   Code = "s3-unusable"
	S3Racy       Code = "s3-racy"
	S3NotDurable Code = "s3-not-durable"
	S3Slow       Code = "s3-slow"

	GCSUnusable Code = "gcs-unusable"
	GCSOther    Code = "gcs-other-server"
	GCSSlow     Code = "gcs-slow"

	AzureUnusable Code = "azure-unusable"
	AzureOther    Code = "azure-other-server"
	AzureSlow     Code = "azure-slow"

	KubernetesUnusable   Code = "kubernetes-unusable"
	KubernetesRights     Code = "kubernetes-rights"
	KubernetesUnverified Code = "kubernetes-unverified"
	KubernetesSlow       Code = "kubernetes-slow"
)

// The codes about ZooKeeper.
const (
	ZooKeeperUnusable       Code = "zookeeper-unusable"
	ZooKeeperTick           Code = "zookeeper-tick"
	ZooKeeperFewMembers     Code = "zookeeper-few-members"
	ZooKeeperOpen           Code = "zookeeper-open"
	ZooKeeperSlow           Code = "zookeeper-slow"
	ZooKeeperTooOld         Code = "zookeeper-too-old"
	ZooKeeperMembersUnnamed Code = "zookeeper-members-unnamed"
)

// advice says what to do, by code.
var advice = map[Code]string{
	NoQuorum:                "Fix the nodes named in the other findings, until a majority takes part.",
	NodeUnreachable:         "Start the server, or fix the address, the network or a firewall.",
	NodeSilent:              "Check whether the server is stopped, swapping or busy with a slow command, and whether a firewall drops packets.",
	LoginRefused:            "Check the user name and the password in the URL; \"leasehold acl\" prints a rule for a user.",
	NodeLoading:             "Wait until the server has loaded its data.",
	SameServer:              "Name each server once.",
	SameHost:                "Put the servers on machines that do not fail together.",
	EvenNodes:               "Use one server fewer, or one more.",
	ServerTooOld:            "Use Redis 5 or newer, or Valkey.",
	Replica:                 "List the master instead, or see what the sentinels that name it are doing; better, an independent server without replicas.",
	Replicated:              "For more safety use three or five independent servers without replicas. With one, never promote a replica within the maximum TTL of the last grant; if sentinels may, check the tokens where the data lives.",
	Sentinel:                "List the servers that keep the data: independent ones, without a failover. Or, with a weaker guarantee, name the sentinels as redis-sentinel://HOST,HOST...?master=NAME.",
	SentinelSilent:          "Fix what is reported, or remove the sentinel from the URL if it no longer exists.",
	SentinelsDisagree:       "Try again in a few seconds. If it persists, fix the network between the sentinels, or the configuration of those that are behind.",
	Cluster:                 "Give the store as redis-cluster://, or use independent servers that are not part of a cluster.",
	NoCluster:               "Give the store as redis://, or name a server of the cluster.",
	SlotsUnserved:           "Give the slots to a server (CLUSTER ADDSLOTS), or repair the master that had them.",
	Eviction:                "CONFIG SET maxmemory-policy noeviction, and the same in the server's configuration file.",
	MemoryFull:              "Free memory on the server, or raise maxmemory.",
	MemoryLow:               "Free memory on the server, or raise maxmemory, before it is full: a full server refuses locks.",
	RightMissing:            "Give the user the right; \"leasehold acl\" prints the whole rule.",
	KeyForbidden:            "Give the user the pattern (\"leasehold acl\" prints the whole rule), or, if its locks have names with a common beginning, say so with --prefix.",
	ScriptFails:             "Fix what the server reports.",
	WaitersPoll:             "Give the user the right to publish and to subscribe (\"leasehold acl\" prints the whole rule), and use no proxy that does not support pub/sub.",
	ReplacementUnseen:       "Give the user +client|tracking (\"leasehold acl\" prints the whole rule), and use no proxy that does not support it. The server has to be Redis 6 or newer, or Valkey.",
	TTLOverMaximum:          "Use a shorter TTL, or raise max_ttl in the URL, for every client of this store.",
	TTLTooShort:             "Use a longer TTL, or servers with a shorter round trip.",
	RoundTripOver:           "Raise node_timeout in the URL, for all clients, or use servers with a shorter round trip.",
	RoundTripNear:           "Raise node_timeout in the URL, for all clients, or find out what slows the server down.",
	ClocksDiffer:            "Run NTP on all servers, and let it slew the clock instead of stepping it.",
	ClockHere:               "Run NTP here and on the servers.",
	OtherList:               "Give all clients the same list. To replace one list by another, or if this server missed that, run \"leasehold replace\" (see its --help). If no client uses the other list any more, run \"leasehold bootstrap\".",
	ListsReplaced:           "When all clients have both lists, run \"leasehold replace\".",
	OtherVersion:            "Use one version of Leasehold everywhere. When all clients of the other one have ended, run \"leasehold bootstrap\".",
	Quarantined:             "Wait. If it is certain that nobody holds a lock, \"leasehold bootstrap\" ends it at once.",
	RestartedRecently:       "Wait for the time said before trusting that nobody else holds a lock.",
	RestartUnseen:           "No action is needed. If it is certain that nobody holds a lock, \"leasehold bootstrap\" lets the node take part at once.",
	FsyncNotAlways:          "Set appendonly yes and appendfsync always on the server, or take fsync=always out of the URL.",
	PersistenceFailing:      "Check the server's log: usually the disk is full, or a directory is not writable.",
	PersistenceNone:         "Set appendonly yes and appendfsync always, or use three or five independent servers.",
	PersistenceSnapshot:     "Set appendonly yes and appendfsync always, or use three or five independent servers.",
	PersistenceEverySec:     "Set appendfsync always, or use three or five independent servers.",
	PersistenceUnknown:      "Let the user read the configuration (\"leasehold acl --for doctor\"), or check it yourself: only appendfsync always loses nothing.",
	InfoForbidden:           "Give the user +info; \"leasehold acl\" prints the whole rule.",
	ConfigForbidden:         "Give the user +config|get to have this checked (\"leasehold acl --for doctor\").",
	LockWithoutTTL:          "Find out who made the key, and delete it if nobody relies on it: until then the lock cannot be taken.",
	LockOfWrongType:         "Give the locks other names, or delete the keys if nobody needs them.",
	RedissonLock:            "Use one of the two libraries for a name. They exclude each other, but Redisson does not wait: it throws an exception while Leasehold has the lock.",
	ForeignLock:             "No action is needed: both kinds of clients exclude each other. Their leases have no fencing token.",
	ForeignCounter:          "Do not use that name for a lock, or move what is there.",
	CounterWithoutTTL:       "If the key is the counter of a lock, PEXPIRE it in a day's milliseconds, 86400000, and find out what removed its TTL. If not, do not use that name for a lock.",
	TombstoneWithoutTTL:     "PEXPIRE the keys in max_ttl, and find out what removed their TTL.",
	KeysNotSeen:             "Give the user +scan to have this checked (\"leasehold acl --for doctor\").",
	KeysPartlySeen:          "Limit the keys with --prefix.",
	FileOnNetwork:           "Put the folder on a disk of this machine, or use a server for locks between machines.",
	FileExposed:             "Remove the other users' rights; if the folder is shared on purpose, add shared=true to its URL.",
	FileUnusable:            "Fix what is reported, or choose another folder.",
	FileDiskLow:             "Free space on the disk.",
	FileShared:              "No action is needed if all users that can write the folder may do that.",
	FileMissing:             "No action is needed.",
	DatabaseUnusable:        "Fix what is reported. If tables or rights are missing, run \"leasehold schema\".",
	DatabaseNotDurable:      "In PostgreSQL, set fsync, full_page_writes and synchronous_commit on, and make the standbys synchronous (synchronous_standby_names). In MySQL, set innodb_flush_log_at_trx_commit and sync_binlog to 1 and innodb_doublewrite on; a failover can lose grants there. Or check the tokens where the data lives.",
	DatabasePooled:          "Connect to the server itself, with a URL of its own for locks. Locks are safe as it is.",
	EtcdUnusable:            "Fix what is reported. The user needs the right to read and write all keys below the prefix; docs/etcd.md has the commands.",
	EtcdNoLeader:            "Start the members that are down, or fix the network between them, until a majority reach each other.",
	EtcdAlarm:               "For NOSPACE: compact and defragment (etcdctl compact, etcdctl defrag), then etcdctl alarm disarm. For CORRUPT: replace the member.",
	EtcdNotSafe:             "Upgrade all members, and name all of them in the URL. Or check the tokens where the data lives.",
	EtcdFewMembers:          "No action is needed. Three members or more go on if one is lost.",
	EtcdMembersUnnamed:      "Name all voting members in the URL.",
	EtcdMemberDown:          "Start the member, or fix its address in the URL, the network or a firewall.",
	EtcdLearner:             "Leave it out of the URL until it is promoted.",
	EtcdSlow:                "Look for a slow disk or network of the members, or use a longer TTL.",
	EtcdUncompacted:         "Start the members with --auto-compaction-retention, such as 1h.",
	EtcdRestored:            "Find out whether it was restored with --bump-revision. If it was not, and resources check tokens, use another prefix, and give a floor above the last token in its URL; docs/etcd.md says how.",
	NATSUnusable:            "Fix what is reported. docs/nats.md has the rights that a user needs, and what the stream has to be.",
	NATSNotSynced:           "Set sync_interval: always in the jetstream block of every server, and say sync=always in the URL. Or check the tokens where the data lives.",
	NATSSyncWrong:           "Set sync_interval: always in the jetstream block of those servers, or take sync=always out of the URL.",
	NATSSyncUnseen:          "Name the monitoring port of each server in the URL, such as monitor=http://10.0.0.1:8222,http://10.0.0.2:8222.",
	NATSFewReplicas:         "No action is needed. A stream with three replicas goes on if a server is lost.",
	NATSReplicaBehind:       "Start the server, or fix the network between the servers. The stream stops if fewer than half are left.",
	NATSSlow:                "Look for a slow disk or network of the servers, or use a longer TTL.",
	S3Unusable:              "Fix what is reported. docs/s3.md has the rights that a user needs, and which servers have conditional writes.",
	S3Racy:                  "Use S3 itself, or a server that replaces an object and checks its ETag in one step.",
	S3NotDurable:            "If the server acknowledges writes only when they outlive a crash, say durable=true in the URL. Or check the tokens where the data lives.",
	S3Slow:                  "Use a bucket that is nearer, or a longer TTL.",
	GCSUnusable:             "Fix what is reported. docs/gcs.md has the rights that an account needs.",
	GCSOther:                "Use it for tests alone, or check the tokens where the data lives.",
	GCSSlow:                 "Use a bucket that is nearer, or a longer TTL.",
	AzureUnusable:           "Fix what is reported. docs/azure.md has the rights that an identity needs.",
	AzureOther:              "Use it for tests alone, or check the tokens where the data lives.",
	AzureSlow:               "Use an account that is nearer, or a longer TTL.",
	KubernetesUnusable:      "Fix what is reported. docs/kubernetes.md has the rights that an account needs.",
	KubernetesRights:        "Give the account the Role that \"leasehold acl --store kubernetes://NAMESPACE\" prints.",
	KubernetesUnverified:    "Name the server as https://HOST, and the authority that has signed its certificate, in the kubeconfig.",
	KubernetesSlow:          "Give the API server more room, or use a longer TTL.",
	ZooKeeperTooOld:         "Upgrade the servers, one after the other.",
	ZooKeeperMembersUnnamed: "Name all voting members in the URL.",
	ZooKeeperUnusable:       "Fix what is reported. If rights are missing, \"leasehold acl --zookeeper NODE\" prints the ACL.",
	ZooKeeperTick:           "Give the servers' tickTime as tick in the URL, such as ?tick=2s, or take minSessionTimeout out of their configuration.",
	ZooKeeperFewMembers:     "Use an ensemble of three or five servers on machines that do not fail together.",
	ZooKeeperOpen:           "Put an identity into the URL, as zookeeper://USER:PASSWORD@HOST, and set the ACL that \"leasehold acl --zookeeper NODE\" prints.",
	ZooKeeperSlow:           "Give the servers disks of their own for their logs, or raise tickTime on every server.",
	BehindServer:            "Run \"leasehold doctor\" where the server runs, with the --store that it has.",
	MemoryOnly:              "Between processes use \"file\", between machines a server.",
}

// adviceForSeveral replaces advice if several independent servers decide by
// majority.
var adviceForSeveral = map[Code]string{
	Replica:             "List its master instead, or another server that has none: each server of the list must be a master without replicas.",
	Replicated:          "Remove the replicas: the other servers of the list cover the loss of one. Until then never promote a replica within the maximum TTL of the last grant.",
	Sentinel:            "List the servers that keep data, which no sentinel fails over.",
	Cluster:             "List servers that are not part of a cluster.",
	PersistenceNone:     "No action is needed. With appendonly yes and appendfsync always, a server that was restarted takes part again at once.",
	PersistenceSnapshot: "No action is needed. With appendonly yes and appendfsync always, a server that was restarted takes part again at once.",
	PersistenceEverySec: "No action is needed. With appendfsync always, a server that was restarted takes part again at once.",
}

// Codes returns all codes, in the order in which findings of the same severity
// are listed.
func Codes() []Code { return slices.Clone(codes) }

var codes = []Code{
	NoQuorum, NodeUnreachable, NodeSilent, LoginRefused, NodeLoading, SameServer, Replica, Sentinel, Cluster, NoCluster, SlotsUnserved,
	ServerTooOld, Eviction, MemoryFull, RightMissing, KeyForbidden, ScriptFails, TTLOverMaximum, RoundTripOver,
	LockWithoutTTL, LockOfWrongType, RedissonLock,
	OtherList, OtherVersion, FileOnNetwork, FileExposed, FileUnusable, DatabaseUnusable, EtcdUnusable, EtcdNoLeader, EtcdAlarm, NATSUnusable, NATSSyncWrong, S3Unusable, S3Racy, GCSUnusable, AzureUnusable, KubernetesUnusable, KubernetesRights, ZooKeeperUnusable, ZooKeeperTooOld, ZooKeeperTick,
	SentinelsDisagree, FsyncNotAlways, Quarantined, RestartedRecently, Replicated, SentinelSilent, SameHost, EvenNodes, MemoryLow, PersistenceFailing,
	TTLTooShort, RoundTripNear, WaitersPoll, ReplacementUnseen, DatabaseNotDurable, DatabasePooled, EtcdNotSafe, EtcdMemberDown, EtcdMembersUnnamed, EtcdLearner, EtcdSlow, EtcdUncompacted, EtcdRestored, NATSNotSynced, NATSReplicaBehind, NATSSlow, S3NotDurable, S3Slow, GCSOther, GCSSlow, AzureOther, AzureSlow, KubernetesUnverified, KubernetesSlow, ZooKeeperOpen, ZooKeeperSlow, ZooKeeperFewMembers, ZooKeeperMembersUnnamed, ClocksDiffer, ClockHere,
	PersistenceNone, PersistenceSnapshot, PersistenceEverySec, PersistenceUnknown,
	ForeignCounter, CounterWithoutTTL, TombstoneWithoutTTL, FileDiskLow,
	ListsReplaced, RestartUnseen, ForeignLock, InfoForbidden, ConfigForbidden, KeysNotSeen, KeysPartlySeen,
	FileShared, FileMissing, EtcdFewMembers, NATSFewReplicas, NATSSyncUnseen, MemoryOnly, BehindServer,
}
