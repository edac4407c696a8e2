package redisstore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
)

// What a server says unasked: that somebody's turn has come. It says so on the
// connection that it is asked on, which listens to the store's channel from the
// beginning, and so in the order in which it happened. What is heard is a hint:
// whenever something may have been missed, all who wait ask the node again.

// waitingProof is how long a connection may be silent while somebody waits before it
// is tried: it may be dead without anybody having said so. Places of 30 seconds are
// refreshed before, which does as well.
const waitingProof = 15 * time.Second

// listen has the server tell us, and, where it is the only one, looks which list it is
// one of. hello is what it said to the third version of the protocol, without which it
// could not tell us while it is asked other things as well. One that does not let us
// listen says so to those who wait, who then ask now and then.
func (n *node) listen(w *wire, hello value) error {
	if n.s.route != nil {
		return n.s.route.listen(n, w, hello)
	}
	var asked []*command
	if hello.kind != '-' {
		if n.alone() {
			asked = append(asked, newCommand("SUBSCRIBE", listChannel))
		}
		asked = append(asked, newCommand("SUBSCRIBE", n.s.channel))
	}
	channels := len(asked)
	if n.alone() {
		asked = append(asked, newCommand("GET", markKey))
	}
	all, err := w.exchange(asked)
	if err != nil {
		return err
	}
	if n.alone() {
		mark := all[channels]
		if mark.isError("LOADING") { // it has not read it yet
			return newRefused(mark)
		}
		n.belongs(mark)
	}
	said := hello
	if channels > 0 {
		said = all[channels-1]
	}
	return n.listens(w, said)
}

// listens takes in what the server said to that.
func (n *node) listens(w *wire, said value) error {
	if w.hears = said.kind == '>'; w.hears {
		return nil
	}
	if said.isError("LOADING") {
		return newRefused(said)
	}
	n.mu.Lock()
	told := n.deaf
	n.deaf = true
	n.mu.Unlock()
	if !told {
		n.log.Warn("the server does not let us listen: who waits for a lock asks for it now and then instead", "err", said.String())
	}
	return nil
}

// heard takes in what the server said unasked.
func (w *wire) heard(v value) {
	if !v.isMessage() {
		return
	}
	n := w.n
	switch {
	case string(v.list[1].text) == listChannel:
		w.abandon(errListChanged)
		return
	case string(v.list[0].text) == "sunsubscribe":
		w.replace(errUnheard)
		return
	}
	told, ok := readTold(string(v.list[2].text))
	switch {
	case !ok:
		n.log.Debug("a message to those who wait is not understood", "message", v.list[2].String())
	case told.granted && n.isCounting(): // if it was declared empty, it grants again
		n.s.keeper.OnPushLost(n.index)
	case told.granted:
		if !pushesStamped {
			told.stamp = w.at
		}
		name := n.s.keeper.OnGranted(n.index, told.owner, driver.Reply{Token: told.token, Counted: told.counted, Reserved: told.reserved, Stamp: told.stamp, Clock: told.clock, At: w.at})
		if name != "" && n.s.guarded.Load() {
			n.saw([]byte(name), told.token, w.at)
		}
	default:
		n.s.keeper.OnFree(n.index, told.owner)
	}
}

// isMessage says whether it is one, or that there will be none any more.
func (v value) isMessage() bool {
	if v.kind != '>' || len(v.list) != 3 {
		return false
	}
	kind := string(v.list[0].text)
	return kind == "message" || kind == "smessage" || kind == "sunsubscribe"
}

// missed has those who wait ask the node again, after its connection broke.
func (w *wire) missed() {
	if w.hears && missedAsked { // also for places that nobody waits at yet
		w.n.s.keeper.OnPushLost(w.n.index)
	}
}

// prove has a connection tried on which somebody waits for what is not said. The mutex
// is held, and nothing is in flight. It returns when to look again; zero: no need to.
func (w *wire) prove(now time.Time) (again time.Time) {
	n := w.n
	if !w.hears || n.s.waiting.Load() == 0 {
		return time.Time{}
	}
	if at := w.used.Add(n.s.proof); now.Before(at) {
		return at
	}
	if n.waiting.n == 0 {
		n.s.inFlight.Add(1)
		n.waiting.push(call{command: pingCommand, timeout: n.s.o.ConnectTimeout, look: make(poll, 1)})
		n.wake()
	}
	return time.Time{} // it is looked again when the answer is late
}
