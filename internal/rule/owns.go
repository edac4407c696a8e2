package rule

// Ranked is one place of an ordered list, in an engine that keeps a lock as such a
// list: the keys under an etcd prefix by revision, or the children of a ZooKeeper
// node by sequence. Holders and waiters have places alike; Owns tells them apart.
// A zero Weight means 1.
type Ranked struct {
	Owner  string
	Meta   string
	Spec   Spec
	Weight int64
	// Kept means that the place holds the lock although it may no longer fit: it did
	// before Resize.
	Kept bool
}

// Owns says what places[me] has: Granted if it holds the lock, Busy with its
// Position in the queue if it waits, and Mismatch if it asks for another kind than
// the one in use. The oldest place comes first. Blocker is the first holder while the
// leases leave no room, and otherwise the waiter at the head of the queue. Owns reads
// neither tokens nor times: the engine keeps them.
//
// It decides as Admit and Advance do for fair asks: a place that is in the way of
// another kind stays so until its owner removes it.
func Owns(places []Ranked, me int) Answer {
	holders := Holders(places)
	if me < holders {
		return Answer{Verdict: Granted, Spec: places[me].Spec}
	}
	p, first := places[me], places[0]
	ans := Answer{Verdict: Busy, Spec: first.Spec, Position: me - holders + 1}
	switch {
	case p.Spec != first.Spec, p.weight() < 1, p.weight() > p.Spec.Limit:
		ans.Verdict = Mismatch
	}
	room := first.Spec.Limit
	for _, h := range places[:holders] {
		room -= h.weight()
	}
	if me == 0 {
		return ans
	}
	blocker := first
	if ans.Verdict == Busy && p.weight() <= room {
		blocker, ans.Blocker.Waiting = places[holders], true
	}
	ans.Blocker.Owner, ans.Blocker.Meta = blocker.Owner, blocker.Meta
	return ans
}

// Holders returns how many places hold the lock: as many from the front as fit
// together. The first defines the kind. A place of another kind waits until it is
// the first, and all behind it wait for it: a client that knows only its own kind
// takes the lock at the front of the list, whatever stands behind.
func Holders(places []Ranked) int {
	if len(places) == 0 {
		return 0
	}
	spec := places[0].Spec
	room := spec.Limit
	for i, p := range places {
		if p.Spec != spec || !p.Kept && (p.weight() < 1 || p.weight() > room) {
			return i
		}
		room -= p.weight()
	}
	return len(places)
}

func (p Ranked) weight() int64 {
	if p.Weight == 0 {
		return 1
	}
	return p.Weight
}
