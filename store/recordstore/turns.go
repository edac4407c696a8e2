package recordstore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// turns has a client that replaces a record all the time leave it to others now and then. Another client
// needs the time of two writes to read the record and to write, and does so in vain if there is a write in
// between. So it could lose a lease that it cannot renew.
type turns struct {
	took  time.Duration // the last write
	ended clock.Instant // the last write
	row   int           // how many writes have followed each other too soon for others
	began clock.Instant // the first of them
}

// How many writes follow each other at most: in a record with leases or places of other clients, and
// otherwise, if they take less than a quarter of the time that others have for a step. The pauses then
// take a quarter of the time of a client that does nothing else, or a twentieth.
const (
	mostBeside = 8
	mostAlone  = 64
)

// wrote notes a write.
func (n *turns) wrote(began, ended clock.Instant) { n.took, n.ended = ended.Sub(began), ended }

// pause returns how long to leave the record alone before the next write.
func (n *turns) pause(now clock.Instant, most int, longest time.Duration) time.Duration {
	if n.row == 0 || now.Sub(n.ended) > 2*n.took {
		n.row, n.began = 0, now
	}
	if n.row++; n.row <= most && now.Sub(n.began) <= longest {
		return 0
	}
	n.row = 0
	return 3 * n.took
}

// giveWay leaves the record to other clients if it is their turn. It is called by the goroutine that writes.
func (g *register) giveWay(ctx context.Context) {
	if g.s.peers != nil { // they are quick, and never sleep
		return
	}
	g.mu.Lock()
	most := mostAlone
	if g.last.hasOthers() {
		most = mostBeside
	}
	g.mu.Unlock()
	if rest := min(g.turns.pause(g.s.now(), most, g.s.limit/4), g.s.limit/4); rest > 0 {
		clock.Sleep(ctx, rest)
	}
}

// hasOthers reports whether other clients have leases or places.
func (s *snapshot) hasOthers() bool {
	if s == nil {
		return false
	}
	for key, l := range s.lives {
		if !l.own && key.kind == 0 {
			return true
		}
	}
	return false
}
