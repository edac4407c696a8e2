package doctor

import "github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"

// Redis is what the examination of Redis servers leads to.
func Redis(e redisadmin.Examination) []Finding {
	r := &report{several: several(e)}
	reachable(r, e)
	identity(r, e)
	roles(r, e)
	watched(r, e)
	memory(r, e)
	rights(r, e)
	times(r, e)
	clocks(r, e)
	lists(r, e)
	restarts(r, e)
	persistence(r, e)
	keys(r, e)
	return r.sorted()
}
