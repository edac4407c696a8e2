// Package kubernetesstore keeps locks in Kubernetes, one Lease object of coordination.k8s.io/v1 for
// each lock. For store.Open the URL is kubernetes://NAMESPACE, as Open describes it.
//
// A step replaces the object if its resourceVersion is the one that was read. The record of the
// lock is in an annotation; store/recordstore does the rest.
//
// # What is promised
//
// The API server keeps objects in etcd, which has a write on disk before it answers, and reads
// without a resourceVersion see the newest one, so the class is store.CrashSafe. Clients cannot
// see how many members etcd has, so it is no more than that.
//
// # Beside leader election
//
// The spec of the object names the holder of the lock, as client-go's LeaseLock reads and writes it.
// A candidate with a LeaseLock on the same object excludes the holders here, of whatever kind of
// lock, and is excluded by them. It has no fencing token and no place in the queue.
//
// # Time
//
// Each client counts TTLs by its own clock, from when it first sees a lease. A client that finds
// the lock of a dead holder watches it for a TTL, and one that tries once and leaves never gets
// it, unless Options.Skew lets it use the dates of the server.
//
// No object is deleted here. If others delete one, its next token begins at the revision of
// etcd, and so is larger than earlier ones.
//
//	driver.go   the driver of recordstore, and its requests
//	object.go   a lock as a Lease object, and its name
//	watch.go    pushes
//	open.go     Options, and making the client
//	examine.go  what the doctor is told
//	rights.go   the Role that a user needs
package kubernetesstore
