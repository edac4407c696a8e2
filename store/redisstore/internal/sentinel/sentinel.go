package sentinel

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

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// Group finds the address of the master.
type Group struct {
	addrs  []config.Address // of the sentinels, with their own credentials
	Master string           // the sentinels' name of the master

	mu    sync.Mutex
	at    string // where the master was last found; empty: not asked yet
	epoch uint64 // the newest one that was reported
}

// Reply is one sentinel's reply.
type Reply struct {
	Sentinel string
	Master   string // address of the master
	// Epoch counts the configurations that the sentinels have agreed on; each failover
	// adds one. A sentinel that was cut off from the others stays behind. dated is set if
	// epoch is known.
	Epoch uint64
	dated bool
	Err   error // why there is nothing above
}

// New returns the sentinels, if the URLs named some, and the address of the one
// node that they watch.
func New(addrs []config.Address, o config.Config) (*Group, []config.Address) {
	if o.Master == "" {
		return nil, addrs
	}
	s := &Group{Master: o.Master}
	for _, a := range addrs {
		s.addrs = append(s.addrs, config.Address{Host: a.Host, TLS: a.TLS, Username: o.SentinelUsername, Password: o.SentinelPassword})
	}
	node := addrs[0]
	node.Host = o.Master
	return s, []config.Address{node}
}

// Name is the name of the node in messages.
func (s *Group) Name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == "" {
		return s.Master
	}
	return s.Master + " at " + s.at
}

// FoundAt records where the master was found.
func (s *Group) FoundAt(host string) {
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
func newest(said []Reply, known uint64, many int) (masters []string, epoch uint64, err error) {
	var best []Reply
	for _, t := range said {
		if t.Err != nil {
			continue
		}
		switch {
		case len(best) == 0 || t.dated && (!best[0].dated || t.Epoch > best[0].Epoch):
			best = []Reply{t}
		case t.dated == best[0].dated && t.Epoch == best[0].Epoch:
			best = append(best, t)
		}
	}
	if len(best) == 0 {
		return nil, known, &noMasterError{said: said}
	}
	if epoch = best[0].Epoch; !best[0].dated {
		epoch = known
	} else if epoch < known && len(best) < many {
		return nil, known, &noMasterError{said: said, late: true}
	}
	votes := map[string]int{}
	for _, t := range best {
		if votes[t.Master]++; votes[t.Master] == 1 {
			masters = append(masters, t.Master)
		}
	}
	slices.SortStableFunc(masters, func(a, b string) int { return cmp.Compare(votes[b], votes[a]) })
	return masters, epoch, nil
}

// Masters asks the sentinels; see newest, and ask for the meaning of moment.
func (s *Group) Masters(ctx context.Context, p *Pool, moment time.Duration, many int) ([]string, error) {
	said := p.Ask(ctx, moment)
	s.mu.Lock()
	defer s.mu.Unlock()
	masters, epoch, err := newest(said, s.epoch, many)
	s.epoch = epoch
	return masters, err
}

// othersMoment is how long the other sentinels may take to answer Find after the first has
// named a master. One of the others may be dead; one may know a newer master.
const othersMoment = 100 * time.Millisecond

// Find asks the sentinels over new connections, and returns the addresses where the master
// may be, the likeliest first.
func (s *Group) Find(ctx context.Context, o *config.Config) ([]string, error) {
	p := s.NewPool(o)
	defer p.Close()
	masters, err := s.Masters(ctx, p, othersMoment, p.Size()/2+1)
	if err == nil {
		s.FoundAt(masters[0])
	}
	return masters, err
}

// noMasterError says that the sentinels did not report the master's address, and what each
// of them answered. It wraps no error: a timeout of a sentinel is not one of the master.
type noMasterError struct {
	said []Reply
	late bool // the sentinels that answered are behind earlier reports
}

func (e *noMasterError) Error() string {
	var each []string
	for _, t := range e.said {
		if t.Err != nil {
			each = append(each, t.Sentinel+": "+store.Cause(t.Err).Error())
		} else {
			each = append(each, fmt.Sprintf("%s: it names %s (epoch %d)", t.Sentinel, t.Master, t.Epoch))
		}
	}
	why := "no sentinel names a master"
	if e.late {
		why = "no up-to-date sentinel names a master: the sentinels that answer may be cut off from the others"
	}
	return why + ": " + strings.Join(each, "; ")
}

// Pool holds connections to the sentinels, which are kept between questions. One
// goroutine at a time may use it.
type Pool struct {
	s           *Group
	o           *config.Config
	connections []*conn.Connection // nil: not connected
}

// NewPool returns a pool that has not connected yet.
func (s *Group) NewPool(o *config.Config) *Pool {
	return &Pool{s: s, o: o, connections: make([]*conn.Connection, len(s.addrs))}
}

// Size is the number of sentinels.
func (p *Pool) Size() int { return len(p.connections) }

// Close closes all connections.
func (p *Pool) Close() {
	for i := range p.connections {
		p.hangUp(i)
	}
}

func (p *Pool) hangUp(i int) {
	if w := p.connections[i]; w != nil {
		w.Conn.Close()
		p.connections[i] = nil
	}
}

// Ask asks all sentinels at once, since one that is cut off from the others does not know
// it. It blocks until all have answered or ctx ends. If moment is not zero, it waits at
// most that long after the first sentinel has named a master.
func (p *Pool) Ask(ctx context.Context, moment time.Duration) []Reply {
	ctx, cancel := context.WithTimeout(ctx, p.o.ConnectTimeout)
	defer cancel()
	enough := time.AfterFunc(time.Hour, cancel)
	defer enough.Stop()
	said := make([]Reply, len(p.connections))
	var all sync.WaitGroup
	var first sync.Once
	for i := range said {
		all.Go(func() {
			said[i] = p.askOne(ctx, i)
			if said[i].Err == nil && moment > 0 {
				first.Do(func() { enough.Reset(moment) })
			}
		})
	}
	all.Wait()
	return said
}

// askOne asks one sentinel. If the kept connection is dead, it makes a new one.
func (p *Pool) askOne(ctx context.Context, i int) Reply {
	kept := p.connections[i] != nil
	t, alive := p.question(ctx, i)
	if !alive && kept && ctx.Err() == nil {
		t, _ = p.question(ctx, i)
	}
	t.Sentinel = p.s.addrs[i].Host
	return t
}

// question asks one sentinel once, and reports whether the connection can be kept.
func (p *Pool) question(ctx context.Context, i int) (t Reply, alive bool) {
	defer func() {
		if !alive {
			p.hangUp(i)
		}
	}()
	s := p.s
	var hello [][]byte
	w := p.connections[i]
	if w == nil {
		var err error
		if w, err = conn.Open(ctx, s.addrs[i], p.o); err != nil {
			return Reply{Err: sentinelError(err)}, false
		}
		p.connections[i], hello = w, s.addrs[i].Auth()
	}
	deadline, _ := ctx.Deadline()
	w.Conn.SetDeadline(deadline)
	over := context.AfterFunc(ctx, func() { w.Conn.SetDeadline(time.Unix(1, 0)) })
	// In this order, so that the address is never older than the epoch.
	said, err := w.Exchange(append(hello, resp.Command("SENTINEL", "MASTER", s.Master), resp.Command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Master))...)
	alive = over() && err == nil
	if err != nil {
		return Reply{Err: sentinelError(err)}, false
	}
	if len(hello) > 0 && said[0].Kind == '-' {
		return Reply{Err: sentinelRefused(said[0])}, false
	}
	said = said[len(hello):]
	if t.Master, t.Err = masterNamed(said[1], s.Master); t.Err == nil {
		t.Epoch, t.dated = epochOf(said[0])
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
	if conn.IsTimeout(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return conn.ErrSilent
	}
	return err
}
