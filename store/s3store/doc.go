// Package s3store keeps locks in a bucket of S3, or of a server that speaks its protocol, one
// object for each lock. For store.Open the URL is s3://BUCKET/PREFIX, as Open describes it.
//
// A step replaces the object of a lock, provided that its ETag is the one that was read
// (If-Match), or that there is no object (If-None-Match); store/recordstore does the rest.
// Servers that do not know these conditions ignore them, so Open tries them, and refuses
// such a server.
//
// # What is promised
//
// Locks in S3 itself are store.CrashSafe: it acknowledges a write when it is durable, and
// reads see the newest one. Of another server nobody knows, so the class is
// store.Efficiency unless Options.Durable says otherwise.
//
// # Time
//
// Each client counts TTLs by its own clock, from when it first sees a lease. A client that
// finds the lock of a dead holder watches it for a TTL, and one that tries once and leaves
// never gets it, unless Options.Skew lets it use the dates of the server.
//
// No object is deleted here. If others delete one, its next token begins at the time of the
// server, and so is larger than earlier ones unless less than a second has passed.
//
// # Waiting
//
// S3 notifies nobody, so waiters poll, and each request costs money: docs/s3.md has the sums. These
// locks are for jobs, migrations and elections, not for what changes hands every second.
//
//	driver.go   the driver of recordstore
//	explain.go  errors of servers as recordstore understands them
//	probe.go    whether a server heeds conditions
//	examine.go  what the doctor is told
//	open.go     Options, and making the client
package s3store
