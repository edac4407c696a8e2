package doctor

import (
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/natsstore"
)

// NATS returns the findings about locks with a TTL in NATS JetStream.
func NATS(e natsstore.Examination, ttl time.Duration) []Finding {
	r := &report{}
	if e.Unusable != nil {
		r.add(Error, NATSUnusable, e.Node, "No lock can be acquired there: %v.", store.Excerpt(e.Unusable.Error()))
		return r.sorted()
	}
	switch e.Class {
	case store.Efficiency:
		r.add(Warning, NATSNotSynced, e.Node, "Locks there are for efficiency only: servers that lose power may forget them.")
	case store.CrashSafe:
		r.add(Info, NATSFewReplicas, e.Node, "Locks there are crash-safe: the stream has %d replicas, and nobody gets a lock while its server is down.", e.Replicas)
	}
	switch claims := e.Class > store.Efficiency; {
	case claims && len(e.Unsynced) > 0:
		r.add(Error, NATSSyncWrong, e.Node, "The URL says sync=always, but these servers acknowledge locks before they are on disk: %s.", strings.Join(e.Unsynced, ", "))
	case claims && len(e.Unseen) > 0:
		r.add(Info, NATSSyncUnseen, e.Node, "The URL says sync=always; it cannot be seen whether these servers sync every write: %s.", strings.Join(e.Unseen, ", "))
	}
	if len(e.Behind) > 0 {
		r.add(Warning, NATSReplicaBehind, e.Node, "Servers that keep the stream do not answer or are behind: %s.", strings.Join(e.Behind, ", "))
	}
	if e.Took > ttl/10 {
		r.add(Warning, NATSSlow, e.Node, "A lock and its release took %v. With a TTL of %v, a few such answers in a row end a lease.", store.Round(e.Took), ttl)
	}
	return r.sorted()
}
