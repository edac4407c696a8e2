// Package gcsstore keeps locks in a bucket of Google Cloud Storage, one object for each lock.
// For store.Open the URL is gs://BUCKET/PREFIX, as Open describes it.
//
// A step replaces the object of a lock, provided that its generation is the one that was read,
// or 0 if there is no object; store/recordstore does the rest.
//
// # What is promised
//
// Cloud Storage acknowledges a write when it is durable, and reads see the newest one, so the
// class is store.CrashSafe. Of another server, such as an emulator, nobody knows: the class is
// store.Efficiency.
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
// Nobody is notified, so waiters poll. Cloud Storage lets an object be replaced about once a
// second, so a lock and its release take about a second if they follow each other: these
// locks are for jobs, migrations and elections. docs/gcs.md has the costs.
//
//	driver.go   the driver of recordstore, and its requests
//	open.go     Options, and making the client
//	examine.go  what the doctor is told
package gcsstore
