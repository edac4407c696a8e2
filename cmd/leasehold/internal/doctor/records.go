package doctor

import (
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/azblobstore"
	"github.com/leasehold-dev/leasehold/store/gcsstore"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
	"github.com/leasehold-dev/leasehold/store/natsstore"
	"github.com/leasehold-dev/leasehold/store/s3store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// Database returns the findings about locks in a database.
func Database(e sqlstore.Examination) []Finding {
	node := e.Node
	r := &report{}
	if e.Unusable != nil {
		r.add(Error, "database-unusable", node, "No lock can be acquired there: %v.", e.Unusable)
	}
	if !e.Known {
		return r.sorted()
	}
	if e.Why != "" {
		r.add(Warning, "database-not-durable", node, "Locks there are for efficiency only: %s.", e.Why)
	}
	if e.Polled != "" {
		r.add(Warning, "database-pooled", node, "The server cannot wake waiters, so they poll: %s.", e.Polled)
	}
	return r.sorted()
}

// NATS returns the findings about locks with a TTL in NATS JetStream.
func NATS(e natsstore.Examination, ttl time.Duration) []Finding {
	r := &report{}
	if r.unusable("nats-unusable", e.Node, e.Unusable) {
		return r.sorted()
	}
	switch e.Class {
	case store.Efficiency:
		r.add(Warning, "nats-not-synced", e.Node, "Locks there are for efficiency only: servers that lose power may forget them.")
	case store.CrashSafe:
		r.add(Info, "nats-few-replicas", e.Node, "Locks there are crash-safe: the stream has %d replicas, and nobody gets a lock while its server is down.", e.Replicas)
	}
	switch claims := e.Class > store.Efficiency; {
	case claims && len(e.Unsynced) > 0:
		r.add(Error, "nats-sync-wrong", e.Node, "The URL says sync=always, but these servers acknowledge locks before they are on disk: %s.", strings.Join(e.Unsynced, ", "))
	case claims && len(e.Unseen) > 0:
		r.add(Info, "nats-sync-unseen", e.Node, "The URL says sync=always; it cannot be seen whether these servers sync every write: %s.", strings.Join(e.Unseen, ", "))
	}
	if len(e.Behind) > 0 {
		r.add(Warning, "nats-replica-behind", e.Node, "Servers that keep the stream do not answer or are behind: %s.", strings.Join(e.Behind, ", "))
	}
	r.slow("nats-slow", e.Node, e.Took, ttl)
	return r.sorted()
}

// S3 returns the findings about locks with a TTL in a bucket.
func S3(e s3store.Examination, ttl time.Duration) []Finding {
	r := &report{}
	if r.unusable("s3-unusable", e.Node, e.Unusable) {
		return r.sorted()
	}
	if e.Racy {
		r.add(Error, "s3-racy", e.Node, "The server accepted several writes at once of which each expected the same version, so two clients can get one lock.")
	}
	if e.Class == store.Efficiency {
		r.add(Warning, "s3-not-durable", e.Node, "Locks there are for efficiency only: nothing says that the server still knows them after a crash.")
	}
	r.slow("s3-slow", e.Node, e.Took, ttl)
	return r.sorted()
}

// GCS returns the findings about locks with a TTL in a bucket of Cloud Storage.
func GCS(e gcsstore.Examination, ttl time.Duration) []Finding {
	r := &report{}
	if r.unusable("gcs-unusable", e.Node, e.Unusable) {
		return r.sorted()
	}
	if e.Class == store.Efficiency {
		r.add(Warning, "gcs-other-server", e.Node, "Locks there are for efficiency only: it is not Cloud Storage, and nothing says that it still knows them after a crash.")
	}
	r.slow("gcs-slow", e.Node, e.Took, ttl)
	return r.sorted()
}

// Azure returns the findings about locks with a TTL in a container of Azure.
func Azure(e azblobstore.Examination, ttl time.Duration) []Finding {
	r := &report{}
	if r.unusable("azure-unusable", e.Node, e.Unusable) {
		return r.sorted()
	}
	if e.Class == store.Efficiency {
		r.add(Warning, "azure-other-server", e.Node, "Locks there are for efficiency only: it is not Azure, and nothing says that it still knows them after a crash.")
	}
	r.slow("azure-slow", e.Node, e.Took, ttl)
	return r.sorted()
}

// Kubernetes returns the findings about locks with a TTL in a namespace.
func Kubernetes(e kubernetesstore.Examination, ttl time.Duration) []Finding {
	r := &report{}
	if e.Unverified {
		r.add(Warning, "kubernetes-unverified", e.Node, "The client does not check whom it talks to: somebody in between can read its credentials, and answer in place of the API server.")
	}
	if len(e.Missing) > 0 {
		r.add(Error, "kubernetes-rights", e.Node, "The account may not %s Lease objects.", strings.Join(e.Missing, ", "))
	}
	if e.Unusable != nil {
		if len(e.Missing) == 0 {
			r.add(Error, "kubernetes-unusable", e.Node, "No lock can be acquired there: %v.", store.Excerpt(e.Unusable.Error()))
		}
		return r.sorted()
	}
	r.slow("kubernetes-slow", e.Node, e.Took, ttl)
	return r.sorted()
}

// unusable reports that no lock can be acquired, if so.
func (r *report) unusable(c Code, node string, err error) bool {
	if err != nil {
		r.add(Error, c, node, "No lock can be acquired there: %v.", store.Excerpt(err.Error()))
	}
	return err != nil
}

// slow reports that a lock and its release took long, compared with the TTL of locks.
func (r *report) slow(c Code, node string, took, ttl time.Duration) {
	if took > ttl/10 {
		r.add(Warning, c, node, "A lock and its release took %v. With a TTL of %v, a few such answers in a row end a lease.", store.Round(took), ttl)
	}
}
