package route

import (
	"math/rand/v2"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A member sends pushes by sharded publish, which stays on that member; a plain publish
// would go to all members of the cluster. The channel must therefore be in a slot of the
// member. The scripts recognize a sharded channel by its name, which is part of each
// place: the brace is at the same offset in all of them. The name depends on the
// connection that a request for a place uses, so it is patched when the request is sent.

// clusterChannel returns a channel name. All of them have the same length.
func (r *Router) clusterChannel(tag string) string { return script.ChannelBegin + tag + r.channel }

// listen subscribes to pushes of a member, and to what is published of broken leases. A
// member without slots cannot push; it is connected to again when it has some, see
// resubscribe.
func (r *Router) listen(w *node.Session, hello resp.Value) error {
	said, err := hello, error(nil)
	if hello.Kind != '-' {
		if said, err = r.subscribe(w); err != nil || w.NoChannel {
			return err
		}
	}
	return w.Subscribed(said)
}

// subscribe returns the reply to the subscription to pushes. It also subscribes to broken
// leases, which may be refused. That subscription is not sharded: the breaker does not know
// which members the holder is connected to, so members pass these messages on to each other.
func (r *Router) subscribe(w *node.Session) (resp.Value, error) {
	n := w.Node
	for range mostMoves {
		has, some := r.slotsOf(n)
		if !some {
			break
		}
		tag := cluster.TagIn(func(slot int) bool { return has[slot] }, rand.IntN(1<<(5*cluster.TagSize)))
		w.Channel = r.clusterChannel("{" + tag + "}")
		all, err := w.Exchange(resp.Command("SUBSCRIBE", script.BreakChannel), resp.Command("SSUBSCRIBE", w.Channel))
		if err != nil {
			return resp.Value{}, err
		}
		said := all[1]
		if said.Code() == resp.UnknownCommand {
			w.Channel, w.Relayed = r.clusterChannel(unsharded), true
			if all, err = w.Exchange(resp.Command("SUBSCRIBE", w.Channel)); err != nil {
				return resp.Value{}, err
			}
			said = all[0]
		}
		if said.Kind == '-' {
			if d := resp.RedirectionOf(resp.ErrorOf(said)); d != nil && d.Kind == resp.RedirectMoved {
				if host, ok := cluster.MemberOf(d, n.Address.Host); ok && host != n.Address.Host {
					r.moves(d.Slot, host)
					continue
				}
			}
		}
		return said, nil
	}
	w.NoChannel = true
	return resp.Value{}, nil
}

// unsharded takes the place of the tag and its braces, for servers before version 7. Members pass
// what is published there on to each other, but a member counts only its own subscribers. When a
// slot has moved, its new member finds no subscriber yet and takes back what it has published as
// handed over (see offer.lua). So a waiter takes such a push for a hint, and asks for the lock.
const unsharded = "------"
