// Package otel measures and traces locks with OpenTelemetry:
//
//	o := &leasehold.Options{}
//	in, err := otel.Instrument(o, nil)
//	...
//	defer in.Close()
//	client := leasehold.New(st, o)
//
// A call of Acquire, Try or Do is a span named "acquire", a child of the span in its
// context. The span has an event "wait" when the wait begins and each time its cause
// changes, and an event that says how the wait ended: "handoff" if another holder handed
// the lock over. The span has a link to the
// span of each holder that it waited for: the client puts its own trace into the
// description of its leases (see leasehold.Options.Trace), so the two can be in different
// processes. A loss, and a renewal that failed, is an event of the span in which the lock
// was acquired, if that has not ended. The status of the span is an error if the call failed,
// but not if it only found the lock held, as a Try does: error.type is "busy" then.
//
// The metrics are
//
//	leasehold.acquire.duration    histogram of calls of Acquire, Try and Do until they
//	                              have the lock or give up; error.type says why
//	leasehold.wait.duration       histogram of waits, for calls that had to wait
//	leasehold.hold.duration       histogram of holds; leasehold.loss.cause is set for
//	                              leases that were lost
//	leasehold.lease.count         leases held now
//	leasehold.waiter.count        calls that wait now
//	leasehold.grants              leases obtained, by leasehold.grant.way: asked of the
//	                              "store", or "handoff" by another holder
//	leasehold.renewal.failures    renewals that failed while the lease was valid
//	leasehold.losses              leases lost, by leasehold.loss.cause: "expired",
//	                              "denied" or "max_hold"
//	leasehold.node.count          nodes of Redis, by leasehold.node.state: "up", "down"
//	                              or "quarantined"
//
// error.type is "busy", "canceled", "timeout", "quorum", "late_grant", "invalid",
// "unsupported", "kind_mismatch", "closed", or "store" for other errors of a store.
//
// The name of a lock is an attribute of spans, leasehold.lock.name, but not of metrics,
// since programs make names out of what they work on. Config.Class gives each lock a
// class, which is an attribute of both then, leasehold.lock.class.
package otel
