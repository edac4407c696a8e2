package doctor

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// times compares the round trips of nodes with the node timeout.
func times(r *report, e redisadmin.Examination) {
	if e.Limited && e.TTL > e.MaxTTL {
		r.add(Error, TTLOverMaximum, "", "A TTL of %s is over the maximum of %s (max_ttl): locks with it are refused.", span(e.TTL), span(e.MaxTTL))
	}
	each(e, func(n redisadmin.Examined) {
		switch {
		case n.Trip > e.NodeTimeout:
			r.add(bearable(e), RoundTripOver, n.Node, "A round trip takes %s, and the node timeout is only %s at a TTL of %s: its vote comes too late.", span(n.Trip), span(e.NodeTimeout), span(e.TTL))
		case n.Slowest > e.NodeTimeout/2:
			r.add(Warning, RoundTripNear, n.Node, "A round trip takes up to %s, and the node timeout is only %s at a TTL of %s.", span(n.Slowest), span(e.NodeTimeout), span(e.TTL))
		}
	})
	// The majority decides, so what counts is the slowest of the quickest.
	trip := time.Duration(0)
	for _, l := range e.Memberships {
		var trips []time.Duration
		for _, i := range l {
			if n := e.Nodes[i]; n.Outcome == store.Granted {
				trips = append(trips, n.Trip)
			}
		}
		if len(trips) < majority(l) {
			return
		}
		slices.Sort(trips)
		trip = max(trip, trips[majority(l)-1])
	}
	if lost := trip + validity.Drift(e.TTL); lost > e.TTL/10 {
		r.add(Warning, TTLTooShort, "", "With a TTL of %s, a grant has lost %s of its validity when it arrives (a round trip of %s, and the drift).", span(e.TTL), span(lost), span(trip))
	}
}
