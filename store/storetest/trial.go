package storetest

import (
	"cmp"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// trial is one run of one check on one store.
type trial struct{ *actor }

func newTrial(r reporter, s subject) *trial {
	c := s.first.Caps()
	st := &stage{reporter: r, subject: s, least: max(c.MinTTL, store.MinTTL), resolution: max(c.Resolution, time.Millisecond)}
	t := &trial{&actor{observer: &observer{st}, held: make(map[string]store.Lease), slots: make(map[string][]int64)}}
	t.options.ShortTTL = max(cmp.Or(t.options.ShortTTL, 150*time.Millisecond), t.least)
	t.long = max(time.Minute, 3*t.patience, 16*(t.options.ShortTTL+t.resolution))
	if c.MaxTTL > 0 {
		t.long = min(t.long, c.MaxTTL)
	}
	// An expected event must not be caused by the expiry of a long lease.
	t.patience = min(t.patience, t.long/2)
	r.Cleanup(t.cleanUp)
	return t
}
