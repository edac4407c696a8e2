package redisstore

import "context"

// SentinelSays is what one sentinel reports about the master.
type SentinelSays struct {
	// Sentinel is the sentinel's address, and Master the master's address according to
	// it. Err is why it reported none.
	Sentinel, Master string
	Err              error
	// Epoch counts failovers: a sentinel whose epoch is behind that of the others was cut
	// off. It is zero if the user may not read it.
	Epoch uint64
}

// examineSentinels asks all sentinels and waits for each.
func (n *node) examineSentinels(ctx context.Context) (all []SentinelSays) {
	p := n.s.sentinels.NewPool(&n.s.o)
	defer p.Close()
	for _, t := range p.Ask(ctx, 0) {
		all = append(all, SentinelSays{Sentinel: t.Sentinel, Master: t.Master, Err: t.Err, Epoch: t.Epoch})
	}
	return all
}
