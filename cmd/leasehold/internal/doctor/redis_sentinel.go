package doctor

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// watched reports on a master that sentinels watch, and on the sentinels.
func watched(r *report, e redisadmin.Examination) {
	if e.Sentinels == nil {
		return
	}
	each(e, func(n redisadmin.Examined) {
		switch {
		case n.Server.Replica:
			r.add(Error, Replica, n.Node, "The sentinels name it as the master, and it is a replica of %s: a failover is going on, or they do not know of one.", n.Server.Master)
		default:
			r.add(Warning, Replicated, n.Node, "Sentinels watch it, and promote a replica when it fails (it has %s). That one may not know of a lock that its master granted, and grant it again.", count(n.Server.Replicas, "replica"))
		}
	})
	var says []string
	differ, first := false, ""
	for _, s := range e.Sentinels {
		if s.Err != nil {
			r.add(Warning, SentinelSilent, s.Sentinel, "The sentinel does not say where the master is: %v.", s.Err)
			continue
		}
		says = append(says, fmt.Sprintf("%s says %s (epoch %d)", s.Sentinel, s.Master, s.Epoch))
		differ, first = differ || first != "" && s.Master != first, s.Master
	}
	if differ {
		r.add(Warning, SentinelsDisagree, "", "The sentinels do not agree on where the master is: %s. The largest epoch counts; one that is behind is cut off from the others, unless a failover has just happened.", strings.Join(says, ", "))
	}
}
