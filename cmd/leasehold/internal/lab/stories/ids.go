package stories

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
)

var ids = Story{
	Name:  "ids",
	Title: "Two processes draw IDs, some of them twice without a lock",
	Summary: `The acceptance test of an old lock: two clients read the next ID from a counter,
use it, and write back one more. Without a lock duplicates appear within a second.`,
	Weak: Part{
		Design: "No lock.",
		play: func(s *stage) ending {
			for range 20 { // it may be lucky
				if n, twice := drawIDs(s, s.ttl/4, false); twice > 0 {
					return ending{Failed, fmt.Sprintf("%d of %d IDs were drawn twice.", twice, n)}
				}
			}
			return ending{Held, "no ID was drawn twice."}
		},
	},
	Ours: []Part{{
		Design: "Leasehold: each draw is made under the lock.",
		play: func(s *stage) ending {
			n, twice := drawIDs(s, 2*s.ttl, true)
			if twice > 0 {
				return ending{Broken, fmt.Sprintf("%d of %d IDs were drawn twice.", twice, n)}
			}
			return ending{Held, fmt.Sprintf("%d IDs, none of them twice.", n)}
		},
	}},
}

// drawIDs has two clients draw for a while, and counts the IDs and those that
// were drawn before.
func drawIDs(s *stage, d time.Duration, locked bool) (n, twice int) {
	server := s.server()
	s.asks(server, "SET", "next", "1")
	a, b := s.enter("A"), s.enter("B")
	o := order{Do: draw, Addr: server.Addr(), For: d, TTL: long}
	if locked {
		o.Lock = lock
		a.open(s.url(server.Addr()))
		b.open(s.url(server.Addr()))
	}
	a.begin(o)
	b.begin(o)
	seen := map[string]bool{}
	for _, c := range []*actor{a, b} {
		drawn := c.must(c.report()).IDs
		c.says("has drawn %d IDs", len(drawn))
		for _, id := range drawn {
			if n++; seen[id] {
				twice++
			}
			seen[id] = true
		}
	}
	if n == 0 {
		s.check(errTooSlow)
	}
	return n, twice
}

// draw draws IDs for a while: read, use, add one.
func (p *player) draw(o order) (r report, err error) {
	one := func(ctx context.Context) error {
		v, err := localredis.Do(ctx, o.Addr, "GET", "next")
		if err != nil {
			return err
		}
		id := localredis.Text(v)
		r.IDs = append(r.IDs, id)
		next, err := strconv.Atoi(id)
		if err == nil {
			_, err = localredis.Do(ctx, o.Addr, "SET", "next", strconv.Itoa(next+1))
		}
		return err
	}
	for end := time.Now().Add(o.For); err == nil && time.Now().Before(end); {
		if o.Lock == "" {
			err = one(p.ctx)
			continue
		}
		err = p.client.Mutex(o.Lock).With(leasehold.LockOptions{TTL: o.TTL}).Do(p.ctx, func(ctx context.Context, _ *leasehold.Lease) error {
			return one(ctx)
		})
	}
	return r, err
}
