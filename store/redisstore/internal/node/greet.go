package node

import (
	"context"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Greet implements conn.Handler. It runs the exchange that begins a connection.
func (s *Session) Greet(ctx context.Context) error {
	n := s.Node
	hello, err := n.Shared.Config.Login(ctx, n.Address)
	if err != nil {
		return err
	}
	must := len(hello)
	hello = append(hello, resp.Command("HELLO", "3"), resp.Command("CLIENT", "SETNAME", "leasehold"))
	tracks := n.Shared.Guarded.Load() && MarksLooked
	s.unguarded = !tracks
	if tracks { // before the identity is read, so that no replacement goes unnoticed
		hello = append(hello, membership.TrackCommand)
	}
	looks := tracks && !n.isSingle()
	if looks {
		hello = append(hello, resp.Command("GET", script.MarkKey), resp.Command("GET", script.AloneKey))
	}
	hello = append(hello, identityCommand.Bytes, settingsCommand.Bytes, timeCommand.Bytes)
	sent := n.Shared.Config.Clock.Now()
	said, err := s.Exchange(hello...)
	received := n.Shared.Config.Clock.Now()
	if err != nil {
		return err
	}
	for _, v := range said[:must] {
		if v.Kind == '-' {
			return resp.ErrorOf(v)
		}
	}
	// An error from CLIENT SETNAME does no harm.
	if tracks && said[must].Kind != '-' && said[must+2].Kind == '-' {
		n.noTracking(said[must+2].String())
	}
	is := said[len(said)-3:]
	if looks {
		mark := said[len(said)-5]
		if mark.Code() == resp.Loading {
			return resp.ErrorOf(mark)
		}
		n.looked(mark, said[len(said)-4])
	}
	if err := s.identify(is[0], is[1]); err != nil {
		return err
	}
	n.clock.observe(is[2], sent, received)
	s.run = n.run()
	if err := loadScripts(&s.Pipe); err != nil {
		return err
	}
	if arrives, err := n.starts(looks); err != nil {
		return err
	} else if arrives {
		if err := n.arrive(&s.Pipe); err != nil {
			return err
		}
	}
	return n.Shared.Topology.Listen(s, said[must])
}

// identify checks which server answers. It runs on every connection before the first
// request. Its arguments are the replies to INFO and CONFIG GET.
func (s *Session) identify(info, fsync resp.Value) error {
	n := s.Node
	if info.Code() == resp.Denied {
		n.Log.Warn("INFO is not permitted: cannot check whether two addresses lead to the same server", "err", string(info.Text))
		info = resp.Value{}
	}
	if info.Kind == '-' {
		return resp.ErrorOf(info)
	}
	id := membership.ParseIdentity(info, fsync)
	if id.Loading {
		return resp.NotUp()
	}
	if err := n.Shared.Topology.Fit(s, id); err != nil {
		return err
	}
	n.Mu.Lock()
	n.server = id
	n.Mu.Unlock()
	return n.Shared.servers.Vet(n.index, n.Address.Host, id)
}

// loadScripts loads all scripts before the first call by hash. A script that had to be sent
// again as text would delay everything that is enqueued behind it. An error reply is
// ignored here: callers of the script will get it too.
func loadScripts(p *conn.Pipe[Call]) error {
	lessons := make([][]byte, len(script.All))
	for i, one := range script.All {
		lessons[i] = one.Lesson()
	}
	_, err := p.Exchange(lessons...)
	return err
}
