package redisstore

import "math/rand/v2"

// A member tells us that our turn has come by sharded publish, which does not leave
// it: what is published otherwise goes to all members of the cluster. The channel
// then has to be in a slot of the member's own. What tells the scripts is its name,
// which goes with each place in line: the brace at the same place in all of them. It
// depends on the connection over which a place is asked for, and so is written as
// that is sent.

// unsharded stands for the tag and its braces, for servers before 7.
const unsharded = "------"

// clusterChannel is a channel of the length that they all have.
func (r *router) clusterChannel(tag string) string { return channelBegin + tag + r.channel }

// listen has a member tell us. One that has no slots can not, and is asked again when it
// has; see tune.
func (r *router) listen(n *node, w *wire, hello value) error {
	said, err := hello, error(nil)
	if hello.kind != '-' {
		if said, err = r.subscribe(n, w); err != nil || w.untuned {
			return err
		}
	}
	return n.listens(w, said)
}

// subscribe says what the member says to that.
func (r *router) subscribe(n *node, w *wire) (value, error) {
	for range mostMoves {
		has, some := r.slotsOf(n)
		if !some {
			break
		}
		tag := tagIn(func(slot int) bool { return has[slot] }, rand.IntN(1<<(5*tagSize)))
		w.channel = r.clusterChannel("{" + tag + "}")
		said, err := w.exchange([]*command{newCommand("SSUBSCRIBE", w.channel)})
		if err != nil {
			return value{}, err
		}
		if said[0].isError("ERR unknown command") {
			w.channel = r.clusterChannel(unsharded)
			said, err = w.exchange([]*command{newCommand("SUBSCRIBE", w.channel)})
			if err != nil {
				return value{}, err
			}
		}
		if said[0].kind == '-' {
			if d := readRedirection(string(said[0].text)); d != nil && d.kind == moved {
				if host, ok := d.member(n.addr.host); ok && host != n.addr.host {
					r.moves(d.slot, host)
					continue
				}
			}
		}
		return said[0], nil
	}
	w.untuned = true
	return value{}, nil
}

// slotsOf are the slots that a member has.
func (r *router) slotsOf(n *node) (has []bool, some bool) {
	has = make([]bool, slots)
	r.mu.RLock()
	defer r.mu.RUnlock()
	for slot, m := range r.table {
		has[slot] = m == n
		some = some || m == n
	}
	return has, some
}
