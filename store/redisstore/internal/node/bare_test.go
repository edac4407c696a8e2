package node

import (
	"net"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// bareStore is what independent servers have in common that are none yet.
func bareStore(o config.Config) *Shared {
	s := new(Shared)
	s.Init(o)
	s.Topology, s.Others, s.Class, s.Channel = Independent{}, alone{}, store.CrashSafe, script.ChannelBegin+"x"
	return s
}

// alone are no other nodes.
type alone struct{}

func (alone) Heard(*Node, News)                      {}
func (alone) Looked()                                {}
func (alone) Connected()                             {}
func (alone) Missed(e *script.MembershipError) error { return e }

// sessionOver is a session of n over a connection on which nothing was said yet.
func sessionOver(n *Node, c net.Conn) *Session {
	s := newSession(n)
	n.Attach(&s.Pipe, "", c, s)
	return s
}
