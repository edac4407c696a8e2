package doctor

import (
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// apart is how far clocks may differ without any consequence: a token may lead
// the clock of a node by so much.
const apart = time.Second

// clocks is about the times of day. No lease depends on them, but tokens do:
// they follow the clock of a node.
func clocks(r *report, e redisadmin.Examination) {
	var first, last redisadmin.Examined // the furthest behind and ahead
	off, all := 0, 0                    // how many agree with each other and not with us
	each(e, func(n redisadmin.Examined) {
		if first.Node == "" || n.Ahead < first.Ahead {
			first = n
		}
		if last.Node == "" || n.Ahead > last.Ahead {
			last = n
		}
		if all++; n.Ahead.Abs()-n.AheadError > apart {
			off++
		}
	})
	if d := last.Ahead - first.Ahead; d-last.AheadError-first.AheadError > apart {
		r.add(Warning, ClocksDiffer, "", "The clock of %s is ahead of that of %s by %s. Leases do not depend on it, but grants need a second round trip to agree on a token; and if the counters of a lock are lost, its tokens may go back.", last.Node, first.Node, span(d))
	} else if off > all/2 {
		way := "behind"
		if last.Ahead < 0 {
			way = "ahead of"
		}
		r.add(Warning, ClockHere, "", "This machine's clock is %s that of the servers by about %s. Leases do not depend on it; but grants may need a second round trip to agree on a token, and times that are shown are wrong.", way, span(last.Ahead.Abs()))
	}
}
