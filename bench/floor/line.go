package floor

import (
	"bufio"
	"context"
	"crypto/rand"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/bench/resp"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// standScript enters the queue, giveScript gives the lock to the first waiter and
// notifies it, and passScript does both. None checks anything: that the lock was ours,
// that the first waiter is alive, that the command is not late.
const (
	standScript = `return redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])`
	passScript  = `redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1]) ` + giveScript
	giveScript  = `local next = redis.call('ZPOPMIN', KEYS[2])[1]
redis.call('SET', KEYS[1], next, 'PX', ARGV[3])
redis.call('PUBLISH', next, 'yours')
return 1`
)

var standHash, passHash, giveHash = hash(standScript), hash(passScript), hash(giveScript)

// gathering is how long no process may have come before the lock goes round: a later
// one could get different positions at different servers.
const gathering = 300 * time.Millisecond

// Line is one lock that goes round among processes that all want it again at once, on
// one server or on a majority of several. Each turn takes a command and a message for
// each server. If a process ends or a message is lost, all of them stop.
type Line struct {
	need  int
	conns []net.Conn
	turn  chan struct{} // receives when the lock is ours
	ended sync.WaitGroup

	place string // our entry in the queue, and the channel for messages to us

	mu      sync.Mutex
	command []byte // that passes the lock on
	turns   int    // that are over
	given   []int  // how often each server gave us the lock
	passed  []int  // how often we passed it on there
}

// OpenLine connects to the servers.
func OpenLine(addrs []string) (*Line, error) {
	l := &Line{need: len(addrs)/2 + 1, turn: make(chan struct{}, 1), place: "line:" + rand.Text(), given: make([]int, len(addrs)), passed: make([]int, len(addrs))}
	for i, addr := range addrs {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			l.conns = append(l.conns, conn)
			for _, s := range []string{standScript, passScript, giveScript} {
				if _, err = resp.Ask(addr, "SCRIPT", "LOAD", s); err != nil {
					break
				}
			}
		}
		if err == nil {
			_, err = conn.Write(resp.AppendCommand(resp.AppendCommand(nil, "HELLO", "3"), "SUBSCRIBE", l.place))
		}
		if err != nil {
			l.Close()
			return nil, err
		}
		l.ended.Go(func() { l.read(i, bufio.NewReaderSize(conn, bufferSize)) })
	}
	return l, nil
}

// Close ends the connections. The lock stays with its holder.
func (l *Line) Close() {
	for _, c := range l.conns {
		c.Close()
	}
	l.ended.Wait()
}

// Pair returns the lock of that name. Each Line can have only one.
func (l *Line) Pair(name string) load.Pair { return &linePair{l: l, name: name} }

type linePair struct {
	l      *Line
	name   string
	stands bool
}

func (p *linePair) script(hash string) []byte {
	return resp.AppendCommand(nil, "EVALSHA", hash, "2", p.name, "{"+p.name+"}:line", p.l.place, strconv.FormatInt(time.Now().UnixMicro(), 10), ttl)
}

func (p *linePair) Lock(ctx context.Context) error {
	l := p.l
	if !p.stands {
		p.stands = true
		if err := p.stand(ctx); err != nil {
			return err
		}
	}
	select {
	case <-l.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stand enters the queue for the first time. Another call has to give the lock to the
// first waiter.
func (p *linePair) stand(ctx context.Context) error {
	l := p.l
	for _, c := range l.conns {
		if _, err := c.Write(p.script(standHash)); err != nil {
			return err
		}
	}
	said, err := resp.Ask(l.conns[0].RemoteAddr().String(), "SETNX", "{"+p.name+"}:starter", l.place)
	if err != nil || said != "1" {
		return err
	}
	if err := l.gather(ctx, "{"+p.name+"}:line"); err != nil {
		return err
	}
	for _, c := range l.conns {
		if _, err := c.Write(p.script(giveHash)); err != nil {
			return err
		}
	}
	return nil
}

// gather waits until the queues of all servers are equally long and have not grown for
// a while.
func (l *Line) gather(ctx context.Context, line string) error {
	was, since := "", time.Now()
	for time.Since(since) < gathering {
		var in []string
		for _, c := range l.conns {
			n, err := resp.Ask(c.RemoteAddr().String(), "ZCARD", line)
			if err != nil {
				return err
			}
			in = append(in, n)
		}
		if is := strings.Join(in, " "); is != was || slices.Min(in) != slices.Max(in) {
			was, since = is, time.Now()
		}
		select {
		case <-time.After(gathering / 6):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Unlock passes the lock on at every server where we have it, and at the others as soon
// as we get it there.
func (p *linePair) Unlock(context.Context) error {
	l := p.l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turns++
	l.command = p.script(passHash)
	for i := range l.conns {
		if err := l.pass(i); err != nil {
			return err
		}
	}
	return nil
}

// pass passes the lock on at one server, if we have it there and our turn is over. The
// caller holds the mutex.
func (l *Line) pass(i int) error {
	if l.passed[i] == l.given[i] || l.passed[i] == l.turns {
		return nil
	}
	l.passed[i]++
	_, err := l.conns[i].Write(l.command)
	return err
}

// read receives from one server until the connection ends: the answers to our commands,
// which it ignores, and the messages that we have the lock.
func (l *Line) read(i int, r *bufio.Reader) {
	for {
		said, err := resp.Read(r)
		if err != nil {
			return
		}
		if said.Kind == resp.Push && string(said.Bytes) == "yours" && l.gives(i) != nil {
			return
		}
	}
}

// gives counts how often a server gave us the lock.
func (l *Line) gives(i int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given[i]++
	n := 0
	for _, given := range l.given {
		if given > l.turns {
			n++
		}
	}
	if n == l.need && l.given[i] > l.turns {
		l.turn <- struct{}{}
	}
	return l.pass(i)
}
