package zktest

import (
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
)

// Ensemble is a group of servers that replicate one tree. Its members reach each other
// through proxies, so that a member can be cut off from the others.
type Ensemble struct {
	Servers []*Server
	socks   []*socks // of each member
	// links[i][j] are the proxies through which member i reaches member j, by port.
	links  [][]map[int]*faultproxy.Proxy
	linked chan struct{} // closed when links is complete
}

// LaunchEnsemble starts n servers and waits until all of them serve. The caller must call
// Close.
func LaunchEnsemble(n int, o Options) (*Ensemble, error) {
	var err error
	for range 10 {
		e := &Ensemble{linked: make(chan struct{})}
		if err = e.launch(n, o); err == nil {
			return e, nil
		}
		taken := false
		for _, s := range e.Servers {
			taken = taken || s.taken()
		}
		e.Close()
		if !taken {
			break
		}
	}
	return nil, fmt.Errorf("zktest: %w", err)
}

func (e *Ensemble) launch(n int, o Options) error {
	var members []string
	for i := range n {
		via, err := listenSOCKS(func(port int) (string, bool) { return e.via(i, port) })
		if err != nil {
			return err
		}
		e.socks = append(e.socks, via)
		own := o
		own.Properties = append(via.properties(), o.Properties...)
		s, err := prepare(own, i+1)
		if err != nil {
			return err
		}
		e.Servers = append(e.Servers, s)
		members = append(members, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", s.id, s.ports[1], s.ports[2]))
	}
	for i := range e.Servers {
		e.links = append(e.links, make([]map[int]*faultproxy.Proxy, n))
		for j, to := range e.Servers {
			e.links[i][j] = make(map[int]*faultproxy.Proxy)
			for _, port := range to.ports[1:] { // for the quorum, for elections
				proxy, err := faultproxy.Listen(fmt.Sprintf("127.0.0.1:%d", port))
				if err != nil {
					return err
				}
				e.links[i][j][port] = proxy
			}
		}
	}
	close(e.linked)
	for _, s := range e.Servers {
		if err := s.configure(o, members); err != nil {
			return err
		}
		if err := s.start(); err != nil {
			return err
		}
	}
	for _, s := range e.Servers {
		if err := s.await(); err != nil {
			return err
		}
	}
	return nil
}

// via returns the proxy through which member i reaches a port of another member.
func (e *Ensemble) via(i, port int) (addr string, ok bool) {
	<-e.linked
	for _, to := range e.links[i] {
		if p := to[port]; p != nil {
			return p.Addr(), true
		}
	}
	return "", false
}

// Addrs are the addresses of all members, for clients.
func (e *Ensemble) Addrs() (all []string) {
	for _, s := range e.Servers {
		all = append(all, s.Addr)
	}
	return all
}

// Leader returns the index of the member that leads, and waits for one if need be.
func (e *Ensemble) Leader() (int, error) { return e.member("leader") }

// Follower returns the index of a member that follows, and waits for one if need be.
func (e *Ensemble) Follower() (int, error) { return e.member("follower") }

func (e *Ensemble) member(mode string) (int, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		for i, s := range e.Servers {
			if is, err := s.Mode(); err == nil && is == mode {
				return i, nil
			}
		}
	}
	return 0, errors.New("zktest: no member is " + mode)
}

// Cut swallows what passes between member i and the others, in both directions.
func (e *Ensemble) Cut(i int) { e.each(i, (*faultproxy.Proxy).Blackhole) }

// Heal ends Cut.
func (e *Ensemble) Heal(i int) { e.each(i, (*faultproxy.Proxy).Pass) }

func (e *Ensemble) each(i int, do func(*faultproxy.Proxy)) {
	for j := range e.Servers {
		if i == j {
			continue
		}
		for _, p := range e.links[i][j] {
			do(p)
		}
		for _, p := range e.links[j][i] {
			do(p)
		}
	}
}

// Close ends all servers and removes their files.
func (e *Ensemble) Close() {
	for _, s := range e.Servers {
		s.Close()
	}
	for _, s := range e.socks {
		s.close()
	}
	for _, row := range e.links {
		for _, proxies := range row {
			for _, p := range proxies {
				p.Close()
			}
		}
	}
}
