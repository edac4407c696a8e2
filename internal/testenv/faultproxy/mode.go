package faultproxy

import "time"

type mode uint8

const (
	pass mode = iota
	delay
	blackhole
	holdRequests
	holdReplies
	holdAll
	dropReplies
)

// state is the current mode and orders of the proxy.
type state struct {
	mode      mode
	delay     time.Duration
	released  uint64 // what was received up to this number is delivered, whatever the mode
	refuseNew bool
	cut       *cutOrder // the next reply, or request, to cut, or nil
}

type cutOrder struct {
	match []byte // what the request must contain
	after int    // bytes of the reply to let through; -1: not even the request
}

// Pass passes everything on, including what is held. It cancels RefuseNew and a
// cut that has not happened yet.
func (p *Proxy) Pass() {
	p.set(func(s *state) { *s = state{released: p.seq} })
}

// Delay passes everything on d later, in order, in each direction.
func (p *Proxy) Delay(d time.Duration) {
	p.set(func(s *state) { s.mode, s.delay = delay, d })
}

// Blackhole keeps connections open, accepts new ones, and discards what either
// side sends, even the end of a connection. A connection that has lost data
// cannot go on: it is closed when the mode changes.
func (p *Proxy) Blackhole() { p.setMode(blackhole) }

// DropReplies passes requests on to the server and discards its replies. As after
// Blackhole, connections that have lost data are closed when the mode changes.
func (p *Proxy) DropReplies() { p.setMode(dropReplies) }

// HoldRequests holds requests back until Release or another mode. It then
// delivers them even if the client has disconnected, as a network may.
func (p *Proxy) HoldRequests() { p.setMode(holdRequests) }

// HoldReplies passes requests on to the server and holds its replies back until
// Release or another mode.
func (p *Proxy) HoldReplies() { p.setMode(holdReplies) }

// HoldAll combines HoldRequests and HoldReplies: a network that is down and
// delivers late.
func (p *Proxy) HoldAll() { p.setMode(holdAll) }

// Release delivers what is held at this moment. The mode stays, so later items
// are held again. If nothing is held, Release does nothing.
func (p *Proxy) Release() {
	p.set(func(s *state) {
		if s.mode != blackhole && s.mode != dropReplies {
			s.released = p.seq
		}
	})
}

// RefuseNew resets every new connection, until Pass. Existing connections and the
// mode do not change.
func (p *Proxy) RefuseNew() {
	p.set(func(s *state) { s.refuseNew = true })
}

// CutReplyAfter passes n bytes of the next reply on any connection and then
// closes that connection. It happens once. The server has received the request.
func (p *Proxy) CutReplyAfter(n int) { p.CutReplyTo("", n) }

// CutReplyTo is CutReplyAfter for the reply to the next request that contains
// match, such as the name of a lock. It ignores the client library's own
// requests, such as PING. If requests are pipelined, it cuts the first reply on
// that connection after the request was passed on. It searches each received
// chunk for match, not across chunks.
func (p *Proxy) CutReplyTo(match string, n int) {
	p.set(func(s *state) { s.cut = &cutOrder{match: []byte(match), after: n} })
}

// CutRequest closes the connection of the next request that contains match, and
// passes on nothing of it. It happens once.
func (p *Proxy) CutRequest(match string) { p.CutReplyTo(match, -1) }

// Cut closes all connections now, discards what is held on them, and returns
// their number. New connections are accepted as before.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
	return len(p.links)
}

func (p *Proxy) setMode(m mode) {
	p.set(func(s *state) { s.mode = m })
}

func (p *Proxy) set(change func(*state)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.state.mode
	change(&p.state)
	if p.state.mode != was {
		for l := range p.links {
			if l.holed {
				l.close()
			}
		}
	}
	close(p.changed)
	p.changed = make(chan struct{})
}
