package redisstore

import "context"

// SentinelSays is what one sentinel says about the master.
type SentinelSays struct {
	// Sentinel is its address, Master that of the master as it knows it. If it
	// does not say, Err is why.
	Sentinel, Master string
	Err              error
	// Epoch counts failovers: one that is behind the others was cut off. Zero
	// where the user may not see it.
	Epoch uint64
}

// examineSentinels asks all sentinels, and waits for each.
func (n *node) examineSentinels(ctx context.Context) (all []SentinelSays) {
	p := n.newPanel()
	defer p.close()
	for _, t := range p.ask(ctx, 0) {
		all = append(all, SentinelSays{Sentinel: t.sentinel, Master: t.master, Err: t.err, Epoch: t.epoch})
	}
	return all
}
