// Package doctor draws conclusions from the facts about a store: what endangers
// locks, and what to do about it. It collects no facts itself.
//
//   - doctor.go: findings and their severity
//   - kinds.go: all kinds of findings, with what to do about each
//   - local.go: folders, memory, and stores behind "leasehold serve"
//   - records.go: databases, NATS, buckets and Kubernetes
//   - etcd.go, zookeeper.go
//   - redis.go: one server, several, or a cluster, and who of them can vote
//   - redis_servers.go: who the servers are, and whether they answer
//   - redis_memory.go: what a server may forget
//   - redis_use.go: rights, times, clocks and keys
//   - words.go: numbers and names in messages
package doctor
