package sim

// Tally counts events, to check that a run reaches what it should.
type Tally struct {
	Events     int // outside of the clients' code
	Grants     int // leases that workers got
	Refusals   int // attempts, or waits, that ended without one
	Losses     int // leases that ended before they were released
	Notified   int // of these, by a holder that ran all the time
	Writes     int // to the resource, by holders that counted on their lease
	Releases   int // that were reported as successful
	Extensions int // asked for by holders
	Renewals   int // done by nodes
	Confirms   int // done by nodes
	Buried     int // acquires that arrived after their release
	Heals      int // nodes that were given a lease again
	Handed     int // locks that nodes gave to the next in the queue
	Named      int // leases that an operator ended
	Broken     int // of these, by holders that knew it was broken
	Refused    int // writes of holders whose lock an operator freed at once
	Regained   int // leases of owners that an operator had ended before they knew that they had one
	Crowd      int // most valid leases of one lock at once
	Returned   int // places in the queue that were taken with a release, node by node
}

// Add adds the counts of another run.
func (t *Tally) Add(u Tally) {
	for i, n := range u.fields() {
		if n == &u.Crowd {
			t.Crowd = max(t.Crowd, u.Crowd)
			continue
		}
		*t.fields()[i] += *n
	}
}

func (t *Tally) fields() [19]*int {
	return [...]*int{
		&t.Events, &t.Grants, &t.Refusals, &t.Losses, &t.Notified, &t.Writes, &t.Releases, &t.Extensions,
		&t.Renewals, &t.Confirms, &t.Buried, &t.Heals, &t.Handed, &t.Named, &t.Broken, &t.Refused, &t.Regained, &t.Crowd, &t.Returned,
	}
}
