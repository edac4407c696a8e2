package doctor

import "github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"

// memory reports what happens when a server runs out of memory.
func memory(r *report, e redisadmin.Examination) {
	each(e, func(n redisadmin.Examined) {
		s := n.Server
		switch {
		case evicts(s):
			already := ""
			if s.Evicted > 0 {
				already = " It has evicted " + count(int(s.Evicted), "key") + " since it started."
			}
			r.add(Error, Eviction, n.Node, "When its memory is full it evicts keys, including held locks and token counters (maxmemory-policy %s at %s of %s).%s", s.Eviction, size(s.Memory), size(s.MaxMemory), already)
		case full(s):
			r.add(Error, MemoryFull, n.Node, "Its memory is full (%s of %s): it refuses locks.", size(s.Memory), size(s.MaxMemory))
		case s.MaxMemory > 0 && low(s.Memory, s.MaxMemory):
			r.add(Warning, MemoryLow, n.Node, "Its memory is almost full (%s of %s): when it is full, it refuses locks.", size(s.Memory), size(s.MaxMemory))
		case s.MaxMemory == 0 && low(s.Memory, s.SystemMemory):
			r.add(Warning, MemoryLow, n.Node, "It uses %s of the machine's %s, without a limit: the system may kill it.", size(s.Memory), size(s.SystemMemory))
		}
	})
}

// low reports whether less than a tenth is left.
func low(used, most uint64) bool { return most > 0 && used > most-most/10 }
