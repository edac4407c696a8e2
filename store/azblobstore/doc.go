// Package azblobstore keeps locks in a container of Azure Blob Storage, one blob for each lock. For
// store.Open the URL is azblob://CONTAINER/PREFIX?account=ACCOUNT, as Open describes it.
//
// A step replaces the blob of a lock, provided that its ETag is the one that was read
// (If-Match), or that there is no blob (If-None-Match); store/recordstore does the rest.
//
// # What is promised
//
// Azure acknowledges a write when it is durable, and reads see the newest one, so the class is
// store.CrashSafe. Of another server, such as an emulator, nobody knows: the class is
// store.Efficiency.
//
// # Time
//
// Each client counts TTLs by its own clock, from when it first sees a lease. A client that
// finds the lock of a dead holder watches it for a TTL, and one that tries once and leaves
// never gets it, unless Options.Skew lets it use the dates of the server.
//
// No blob is deleted here. If others delete one, its next token begins at the time of the server,
// and so is larger than earlier ones unless less than a second has passed.
//
// # Waiting
//
// Nobody is notified, so waiters poll, and each request costs money. These locks are for jobs,
// migrations and elections. docs/azure.md has the costs.
//
//	driver.go   the driver of recordstore, and its requests
//	login.go    credentials, and signing with a key
//	open.go     Options, and making the client
//	examine.go  what the doctor is told
package azblobstore
