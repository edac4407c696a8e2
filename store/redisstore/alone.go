package redisstore

import (
	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// A client that knows one server only does not look at the server's mark for each
// lock, which would be a tenth of what a lock costs there. It must not have a list to
// itself all the same when others count that server among several: with a majority of
// those they would not exclude each other. So it looks when it connects, after it has
// begun to listen on a channel on which it is told whenever the list changes. Servers
// that can not tell us (before Redis 6) are looked at on each connection only.

// listChannel is where clients are told that a server's list has changed; it is
// written in scripts/tell.lua, too.
const listChannel = channelBegin + "all"

// alone says whether the node's store knows no other.
func (n *node) alone() bool { return len(n.s.nodes) == 1 }

// belongs sees which list the server is one of, by its mark. Who may not read that, or
// is somewhere where there is none, knows of no other list.
func (n *node) belongs(text value) {
	var foreign *driver.Refusal
	if text.kind != '$' || text.null {
		text.text = []byte(nodemark.New().String())
	}
	mark, err := nodemark.Parse(string(text.text))
	if err != nil {
		n.log.Warn("node can not be used", "err", err)
		foreign = &driver.Refusal{Outcome: store.Refused, Err: err}
	} else if list, other := n.s.lists.others(mark); other {
		said := otherList(value{kind: '$', text: []byte(list)})
		n.log.Warn("the server is one of several that decide together", "err", said.Err)
		foreign = &driver.Refusal{Outcome: said.Outcome, Err: said.Err}
	}
	n.mu.Lock()
	n.foreign = foreign
	n.mu.Unlock()
}

// turnAway answers what was put in line before it was known that it is not for this
// server.
func (n *node) turnAway() {
	n.mu.Lock()
	foreign := n.foreign
	var away []call
	for range n.waiting.n {
		if c, _ := n.waiting.pop(); foreign != nil && c.command.script.keeps() {
			away = append(away, c)
		} else {
			n.waiting.push(c)
		}
	}
	n.mu.Unlock()
	for _, c := range away {
		n.settle(c, reply{outcome: foreign.Outcome, err: foreign.Err})
	}
}
