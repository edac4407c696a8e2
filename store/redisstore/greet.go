package redisstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Greet implements conn.Handler. It runs the exchange that begins a connection.
func (s *session) Greet(ctx context.Context) error {
	n := s.n
	hello, err := n.s.o.Login(ctx, n.addr)
	if err != nil {
		return err
	}
	must := len(hello)
	hello = append(hello, resp.Command("HELLO", "3"), resp.Command("CLIENT", "SETNAME", "leasehold"))
	tracks := n.s.guarded.Load() && marksLooked
	s.unguarded = !tracks
	if tracks { // before the identity is read, so that no replacement goes unnoticed
		hello = append(hello, membership.TrackCommand)
	}
	looks := tracks && !n.isSingle()
	if looks {
		hello = append(hello, resp.Command("GET", script.MarkKey), resp.Command("GET", script.AloneKey))
	}
	hello = append(hello, identityCommand.Bytes, settingsCommand.Bytes, timeCommand.Bytes)
	sent := n.s.o.Clock.Now()
	said, err := s.Exchange(hello...)
	received := n.s.o.Clock.Now()
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
	if err := n.identify(is[0], is[1]); err != nil {
		return err
	}
	n.clock.observe(is[2], sent, received)
	s.run = n.run()
	if err := n.s.topology.settled(s); err != nil {
		return err
	}
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
	return n.s.topology.listen(s, said[must])
}

// identify checks which server answers. It runs on every connection before the first
// request. Its arguments are the replies to INFO and CONFIG GET.
func (n *node) identify(info, fsync resp.Value) error {
	if info.Code() == resp.Denied {
		n.log.Warn("INFO is not permitted: cannot check whether two addresses lead to the same server", "err", string(info.Text))
		info = resp.Value{}
	}
	if info.Kind == '-' {
		return resp.ErrorOf(info)
	}
	id := membership.ParseIdentity(info, fsync)
	if id.Loading {
		return resp.NotUp()
	}
	if err := n.s.topology.fit(n, id); err != nil {
		return err
	}
	n.Mu.Lock()
	n.server = id
	n.Mu.Unlock()
	return n.s.servers.Vet(n.index, n.addr.Host, id)
}

// loadScripts loads all scripts before the first call by hash. A script that had to be sent
// again as text would delay everything that is enqueued behind it. An error reply is
// ignored here: callers of the script will get it too.
func loadScripts(p *conn.Pipe[call]) error {
	lessons := make([][]byte, len(script.All))
	for i, one := range script.All {
		lessons[i] = one.Lesson()
	}
	_, err := p.Exchange(lessons...)
	return err
}

// starts reports whether a new connection begins with a check of the mark that may change it: the
// client wants locks there, and the server may keep them.
func (n *node) starts(looks bool) (bool, error) {
	if looks {
		n.s.decideJoining()
	}
	n.Mu.Lock()
	defer n.Mu.Unlock()
	n.heard, n.arrives = false, false
	if !n.s.guarded.Load() || !marksLooked {
		return false, nil
	}
	if n.server.RunID == "" && n.durable() != "asserted" {
		return false, membership.ErrUnidentified
	}
	n.arrives = n.isSingle() || n.s.taking.Load() && n.foreign == nil
	return n.arrives, nil
}

// arrive checks the mark over a new connection.
func (n *node) arrive(p *conn.Pipe[call]) error {
	n.Mu.Lock()
	c := n.arrivalLocked(true)
	n.Mu.Unlock()
	if c == nil {
		return membership.ErrUnidentified
	}
	all, err := p.Exchange(c.Bytes)
	if err != nil {
		return err
	}
	said := all[0]
	if said.Kind == '-' {
		outcome, err := script.Classify(resp.ErrorOf(said))
		if !script.IsDenied(err) {
			return resp.ErrorOf(said)
		}
		n.setUnmarked(&driver.Refusal{Outcome: outcome, Err: err})
		return nil
	}
	return n.s.arrived(n, said, true)
}
