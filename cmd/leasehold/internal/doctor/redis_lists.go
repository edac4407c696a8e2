package doctor

import (
	"strings"

	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// lists reports nodes that belong to another list of nodes.
func lists(r *report, e redisadmin.Examination) {
	each(e, func(n redisadmin.Examined) {
		if n.Mark.UsedAlone != "" && several(e) {
			r.add(bearable(e), OtherList, n.Node, "The server is in use alone, by %s, and does not become one of several meanwhile: they would not exclude each other.", n.Mark.UsedAlone)
		}
		if n.Mark.Others != "" {
			now, next, both := strings.Cut(n.Mark.Others, ">")
			if both {
				now += ", which are being replaced by " + next
			}
			r.add(bearable(e), OtherList, n.Node, "The server decides together with %s, and refuses clients that have another list: they would not exclude each other.", now)
		}
	})
	if len(e.Memberships) > 1 {
		r.add(Info, ListsReplaced, "", "One list of nodes is being replaced by another: a majority of each has to grant a lock.")
	}
}
