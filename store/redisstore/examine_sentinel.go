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
	p := n.newPanel()
	defer p.close()
	for _, t := range p.ask(ctx, 0) {
		all = append(all, SentinelSays{Sentinel: t.sentinel, Master: t.master, Err: t.err, Epoch: t.epoch})
	}
	return all
}
