package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
)

// ear is the connection on which a client hears what a node says unasked. It is
// made when the client first waits for something, and made again when it broke;
// what was under way on it then is lost.
type ear struct {
	l        *link
	up       bool // the node knows of it
	dialling bool
	failures int
	turn     int // arrivals planned in an earlier turn are void

	said   []push // under way, in order
	lastIn time.Duration
	stuck  int // arrivals that a fault holds
}

// push is what a node says unasked.
type push struct {
	told modelnode.Told[int]
	at   clock.Instant // by the node's clock
}

// listen sees to it that there is an ear, or will be.
func (e *ear) listen() {
	if e.up || e.dialling || e.l.c.dead {
		return
	}
	e.dialling = true
	l := e.l
	if l.held > 0 || l.deaf > 0 || !l.n.reachable() {
		e.later()
		return
	}
	life := l.n.life
	l.w.after(l.delay()+l.delay(), arrival, func() {
		switch {
		case l.c.dead:
		case l.held > 0 || l.deaf > 0 || l.n.life != life || !l.n.reachable():
			e.later()
		default:
			e.dialling, e.failures, e.up = false, 0, true
			l.c.sees(func() {
				l.w.hist.say("c%d listens to n%d", l.c.index+1, l.n.index+1)
				l.w.stirred = true
				l.c.keeper.OnPushLost(l.at)
			})
		}
	})
}

// later tries again after a pause.
func (e *ear) later() {
	e.failures++
	e.l.w.after(min(time.Second, 25*time.Millisecond<<min(e.failures, 6)), timer, func() {
		e.dialling = false
		e.listen()
	})
}

// tell sends a waiter what concerns it.
func (n *node) tell(told []modelnode.Told[int]) {
	for _, t := range told {
		e := &n.w.clients[n.w.owners[t.Owner].client].links[n.index].ear
		n.w.hist.told(n, t)
		if e.up {
			e.said = append(e.said, push{t, n.clock()})
			e.lastIn = e.arriveAt(max(n.w.now()+e.l.delay(), e.lastIn))
		}
	}
}

// reaches says whether the node has a connection to the owner's client.
func (n *node) reaches(owner int) bool {
	return n.w.clients[n.w.owners[owner].client].links[n.index].ear.up
}

func (e *ear) arriveAt(t time.Duration) time.Duration {
	turn := e.turn
	return e.l.w.at(t, arrival, func() {
		if turn == e.turn {
			e.arrives()
		}
	})
}

// arrives has the client hear the first of what was said.
func (e *ear) arrives() {
	l := e.l
	if l.held > 0 || l.deaf > 0 {
		e.stuck++
		return
	}
	p := e.said[0]
	e.said = e.said[1:]
	l.c.sees(func() {
		l.w.hist.hears(l, p.told)
		l.w.stirred = true
		owner := l.w.hist.owner(p.told.Owner)
		if !p.told.Granted {
			l.c.keeper.OnFree(l.at, owner)
			return
		}
		from := clock.Instant(p.told.Stamp)
		if l.w.switches.CountFromPush {
			from = l.c.boot()
		}
		l.c.keeper.OnGranted(l.at, owner, driver.Reply{Kind: quorum.Yes, Token: p.told.Token, Reserved: p.told.Reserved, Counted: true, Stamp: from, Clock: p.at})
	})
}

// heal lets go what a fault held.
func (e *ear) heal() {
	if e.l.held == 0 && e.l.deaf == 0 {
		for range e.stuck {
			e.lastIn = e.arriveAt(max(e.l.w.now()+e.l.delay(), e.lastIn))
		}
		e.stuck = 0
	}
}

// cut breaks it. The client notices, and makes another.
func (e *ear) cut() {
	if !e.up {
		return
	}
	e.up, e.said, e.stuck = false, nil, 0
	e.turn++
	if !e.dialling && !e.l.c.dead {
		e.dialling = true
		e.later()
	}
}
