// Package natsstore keeps locks in NATS JetStream, one message for each lock. For store.Open
// the URL is nats://HOST/BUCKET, as Open describes it.
//
// Each bucket is a stream, LEASEHOLD_ and its name, with one message for each subject. A
// step replaces the message of a lock, provided that its sequence is the one that was read;
// store/recordstore does the rest. Sequences only rise, so tokens do as well, also when a
// message was deleted.
//
// # What is promised
//
// By default NATS acknowledges a write before it is on disk, and syncs every two minutes:
// servers that lose power lose locks that they have granted, and the class is
// store.Efficiency. With sync_interval: always in the configuration of every server, and
// sync=always in the URL to say so, it is store.CrashSafe, or store.Consensus with three or
// more replicas. Clients cannot see the setting of the server.
//
// # Time
//
// Each client counts TTLs by its own clock, from when it first sees a lease. A client that
// finds the lock of a dead holder need not watch it for a TTL: servers date their messages.
// The dates of two servers, or of one whose clock was set, can differ, so Options.Skew
// is added.
//
//	driver.go  the driver of recordstore
//	open.go    Options, and making or checking the stream
//	url.go     URLs
package natsstore
