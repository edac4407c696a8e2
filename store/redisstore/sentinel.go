package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Sentinels watch a master and its replicas, and promote a replica when the master fails.
// With sentinels, a store has one node. It asks them for the master's address each time
// it connects, and once a second while it is connected, since a master that was replaced
// may go on answering; see follow.

// sentinels finds the address of the master.
type sentinels struct {
	addrs  []address // of the sentinels, with their own credentials
	master string    // the sentinels' name of the master

	mu    sync.Mutex
	at    string // where the master was last found; empty: not asked yet
	epoch uint64 // the newest one that was reported
}

// sentinelReply is one sentinel's reply.
type sentinelReply struct {
	sentinel string
	master   string // address of the master
	// epoch counts the configurations that the sentinels have agreed on; each failover
	// adds one. A sentinel that was cut off from the others stays behind. dated is set if
	// epoch is known.
	epoch uint64
	dated bool
	err   error // why there is nothing above
}

// sentinels returns the sentinels of a topology that has them, and the address of the one
// node that they watch.
func (t topology) sentinels(addrs []address, o Options) (*sentinels, []address) {
	if t.scheme != watched.scheme {
		return nil, addrs
	}
	s := &sentinels{master: o.Master}
	for _, a := range addrs {
		s.addrs = append(s.addrs, address{host: a.host, tls: a.tls, username: o.SentinelUsername, password: o.SentinelPassword})
	}
	node := addrs[0]
	node.host = o.Master
	return s, []address{node}
}

// name is the name of the node in messages.
func (s *sentinels) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == "" {
		return s.master
	}
	return s.master + " at " + s.at
}

func (s *sentinels) lookedAt(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = host
}

// newest returns the masters that the newest configuration names, the one that most
// sentinels name first. There is more than one only if some sentinels have just changed
// their mind or are wrong. The argument known is the newest epoch reported before. An
// older epoch counts only if at least many sentinels report it, as they do when an
// operator has set them up anew; fewer may be cut off, and name a master that was
// replaced.
func newest(said []sentinelReply, known uint64, many int) (masters []string, epoch uint64, err error) {
	var best []sentinelReply
	for _, t := range said {
		if t.err != nil {
			continue
		}
		switch {
		case len(best) == 0 || t.dated && (!best[0].dated || t.epoch > best[0].epoch):
			best = []sentinelReply{t}
		case t.dated == best[0].dated && t.epoch == best[0].epoch:
			best = append(best, t)
		}
	}
	if len(best) == 0 {
		return nil, known, &noMasterError{said: said}
	}
	if epoch = best[0].epoch; !best[0].dated {
		epoch = known
	} else if epoch < known && len(best) < many {
		return nil, known, &noMasterError{said: said, late: true}
	}
	votes := map[string]int{}
	for _, t := range best {
		if votes[t.master]++; votes[t.master] == 1 {
			masters = append(masters, t.master)
		}
	}
	slices.SortStableFunc(masters, func(a, b string) int { return cmp.Compare(votes[b], votes[a]) })
	return masters, epoch, nil
}

// masters asks the sentinels; see newest, and ask for the meaning of moment.
func (s *sentinels) masters(ctx context.Context, p *sentinelPool, moment time.Duration, many int) ([]string, error) {
	said := p.ask(ctx, moment)
	s.mu.Lock()
	defer s.mu.Unlock()
	masters, epoch, err := newest(said, s.epoch, many)
	s.epoch = epoch
	return masters, err
}

// noMasterError says that the sentinels did not report the master's address, and what each
// of them answered. It wraps no error: a timeout of a sentinel is not one of the master.
type noMasterError struct {
	said []sentinelReply
	late bool // the sentinels that answered are behind earlier reports
}

func (e *noMasterError) Error() string {
	var each []string
	for _, t := range e.said {
		if t.err != nil {
			each = append(each, t.sentinel+": "+t.err.Error())
		} else {
			each = append(each, fmt.Sprintf("%s: it names %s (epoch %d)", t.sentinel, t.master, t.epoch))
		}
	}
	why := "no sentinel names a master"
	if e.late {
		why = "no up-to-date sentinel names a master: the sentinels that answer may be cut off from the others"
	}
	return why + ": " + strings.Join(each, "; ")
}

// sentinelPool holds connections to the sentinels, which are kept between questions. One
// goroutine at a time may use it.
type sentinelPool struct {
	n     *node
	lines []*wire // nil: not connected
}

func (n *node) newPanel() *sentinelPool {
	return &sentinelPool{n: n, lines: make([]*wire, len(n.s.sentinels.addrs))}
}

func (p *sentinelPool) close() {
	for i := range p.lines {
		p.hangUp(i)
	}
}

func (p *sentinelPool) hangUp(i int) {
	if w := p.lines[i]; w != nil {
		w.conn.Close()
		p.lines[i] = nil
	}
}

// ask asks all sentinels at once, since one that is cut off from the others does not know
// it. It blocks until all have answered or ctx ends. If moment is not zero, it waits at
// most that long after the first sentinel has named a master.
func (p *sentinelPool) ask(ctx context.Context, moment time.Duration) []sentinelReply {
	ctx, cancel := context.WithTimeout(ctx, p.n.s.o.ConnectTimeout)
	defer cancel()
	enough := time.AfterFunc(time.Hour, cancel)
	defer enough.Stop()
	said := make([]sentinelReply, len(p.lines))
	var all sync.WaitGroup
	var first sync.Once
	for i := range said {
		all.Go(func() {
			said[i] = p.askOne(ctx, i)
			if said[i].err == nil && moment > 0 {
				first.Do(func() { enough.Reset(moment) })
			}
		})
	}
	all.Wait()
	return said
}

// askOne asks one sentinel. If the kept connection is dead, it makes a new one.
func (p *sentinelPool) askOne(ctx context.Context, i int) sentinelReply {
	kept := p.lines[i] != nil
	t, alive := p.question(ctx, i)
	if !alive && kept && ctx.Err() == nil {
		t, _ = p.question(ctx, i)
	}
	t.sentinel = p.n.s.sentinels.addrs[i].host
	return t
}

// question asks one sentinel once, and reports whether the connection can be kept.
func (p *sentinelPool) question(ctx context.Context, i int) (t sentinelReply, alive bool) {
	defer func() {
		if !alive {
			p.hangUp(i)
		}
	}()
	s := p.n.s.sentinels
	var hello []*script.Command
	w := p.lines[i]
	if w == nil {
		a := s.addrs[i]
		conn, err := a.dial(ctx, &p.n.s.o)
		if err != nil {
			return sentinelReply{err: sentinelError(err)}, false
		}
		w = &wire{n: p.n, conn: conn}
		w.in = resp.NewReader(conn)
		p.lines[i], hello = w, a.auth()
	}
	deadline, _ := ctx.Deadline()
	w.conn.SetDeadline(deadline)
	over := context.AfterFunc(ctx, func() { w.conn.SetDeadline(time.Unix(1, 0)) })
	// In this order, so that the address is never older than the epoch.
	said, err := w.exchange(append(hello, script.NewCommand("SENTINEL", "MASTER", s.master), script.NewCommand("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.master)))
	alive = over() && err == nil
	if err != nil {
		return sentinelReply{err: sentinelError(err)}, false
	}
	if len(hello) > 0 && said[0].Kind == '-' {
		return sentinelReply{err: sentinelRefused(said[0])}, false
	}
	said = said[len(hello):]
	if t.master, t.err = masterNamed(said[1], s.master); t.err == nil {
		t.epoch, t.dated = epochOf(said[0])
	}
	return t, alive
}

// masterNamed reads the reply to GET-MASTER-ADDR-BY-NAME.
func masterNamed(v resp.Value, name string) (string, error) {
	switch {
	case v.Kind == '-':
		return "", sentinelRefused(v)
	case v.Null:
		return "", fmt.Errorf("it knows no master %q", name)
	case len(v.List) != 2 || len(v.List[0].Text) == 0:
		return "", resp.Unexpected(v)
	}
	host, port := string(v.List[0].Text), string(v.List[1].Text)
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", resp.Unexpected(v)
	}
	return net.JoinHostPort(host, port), nil
}

// epochOf reads the epoch from the reply to SENTINEL MASTER, for which the user may lack
// the permission.
func epochOf(v resp.Value) (uint64, bool) {
	for i := 0; i+1 < len(v.List); i += 2 {
		if string(v.List[i].Text) == "config-epoch" {
			return v.List[i+1].Number()
		}
	}
	return 0, false
}

// sentinelAdvices say what to do about a sentinel's refusal.
var sentinelAdvices = map[resp.Code]string{
	resp.NoAuth:         "the sentinel requires a password of its own: set sentinel_password, and sentinel_username if it has users",
	resp.WrongPassword:  "check sentinel_username and sentinel_password",
	resp.Denied:         "permit the user on the sentinel +sentinel|get-master-addr-by-name and +sentinel|master",
	resp.UnknownCommand: "it is not a sentinel",
	resp.NoPassword:     "the sentinel has no password: remove sentinel_password",
}

// sentinelRefused adds what to do to a sentinel's refusal.
func sentinelRefused(v resp.Value) error {
	err := resp.ErrorOf(v)
	if advice, ok := sentinelAdvices[err.Code()]; ok {
		return fmt.Errorf("%w (%s)", err, advice)
	}
	return err
}

// sentinelError describes why a sentinel could not be asked.
func sentinelError(err error) error {
	if isTimeout(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errSilent
	}
	return err
}
