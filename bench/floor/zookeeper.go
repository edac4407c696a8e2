package floor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// ZooKeeper locks with the requests that Leasehold makes, sent by the library go-zookeeper: no
// token, no TTL, no record, and no answer that is lost. Others must not use the lock.
type ZooKeeper struct {
	c   *zk.Conn
	acl []zk.ACL
}

// OpenZooKeeper connects to a server.
func OpenZooKeeper(ctx context.Context, addr string, session time.Duration) (*ZooKeeper, error) {
	c, err := ConnectZooKeeper(ctx, addr, session)
	if err != nil {
		return nil, err
	}
	return &ZooKeeper{c, zk.WorldACL(zk.PermAll)}, nil
}

// ConnectZooKeeper connects to a server, and waits for 10 s at most until there is a session.
func ConnectZooKeeper(ctx context.Context, addr string, session time.Duration) (*zk.Conn, error) {
	c, events, err := zk.Connect([]string{addr}, session, zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				go func() {
					for range events { // nobody else reads them
					}
				}()
				return c, nil
			}
		case <-ctx.Done():
			c.Close()
			return nil, fmt.Errorf("no session with ZooKeeper: %w", ctx.Err())
		}
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// Close ends the session.
func (z *ZooKeeper) Close() { z.c.Close() }

// Pair returns the lock of that name.
func (z *ZooKeeper) Pair(name string) load.Pair {
	return &zooPair{z: z, dir: "/byhand-" + strings.ReplaceAll(name, "/", "-")}
}

// zooPair is a lock. Unlock makes the place for the next Lock in the same transaction, if
// others were there.
type zooPair struct {
	z   *ZooKeeper
	dir string

	path   string // of the place; empty: there is none
	alone  bool   // nobody else was there at the last look
	number string // of the last place
}

const zooDigits = 10

func numberOf(path string) string { return path[len(path)-zooDigits:] }

func (p *zooPair) create() zk.CreateRequest {
	return zk.CreateRequest{Path: p.dir + "/lock-", Acl: p.z.acl, Flags: zk.FlagEphemeralSequential}
}

func (p *zooPair) Lock(context.Context) (err error) {
	if p.path == "" {
		r := p.create()
		if p.path, err = p.z.c.Create(r.Path, nil, r.Flags, r.Acl); err == zk.ErrNoNode {
			if _, err = p.z.c.Create(p.dir, nil, 0, r.Acl); err == nil || err == zk.ErrNodeExists {
				p.path, err = p.z.c.Create(r.Path, nil, r.Flags, r.Acl)
			}
		}
		if err != nil {
			return err
		}
		if p.follows() {
			return nil
		}
	}
	for {
		names, _, err := p.z.c.Children(p.dir)
		if err != nil {
			return err
		}
		slices.SortFunc(names, func(a, b string) int { return strings.Compare(numberOf(a), numberOf(b)) })
		me := slices.Index(names, p.path[len(p.dir)+1:])
		if p.alone = len(names) == 1; me == 0 {
			p.number = numberOf(p.path)
			return nil
		}
		if mine, err := p.wait(names[me-1], me == 1); mine || err != nil {
			return err
		}
	}
}

// follows reports whether nobody else was there before, and the number is the next one.
func (p *zooPair) follows() bool {
	var last, now int
	fmt.Sscan(strings.TrimLeft(p.number, "0"), &last)
	fmt.Sscan(strings.TrimLeft(numberOf(p.path), "0"), &now)
	if !p.alone || now != last+1 {
		return false
	}
	p.number = numberOf(p.path)
	return true
}

// wait waits for the end of the place before. The lock is then mine if that was the first one.
func (p *zooPair) wait(before string, first bool) (mine bool, err error) {
	var own <-chan zk.Event
	if first {
		if _, _, own, err = p.z.c.GetW(p.path); err != nil {
			return false, err
		}
	}
	_, _, gone, err := p.z.c.GetW(p.dir + "/" + before)
	if err == zk.ErrNoNode {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	select {
	case e := <-gone:
		return first && e.Type == zk.EventNodeDeleted, e.Err
	case e := <-own:
		return false, e.Err
	}
}

func (p *zooPair) Unlock(context.Context) error {
	if p.alone {
		path := p.path
		p.path = ""
		return p.z.c.Delete(path, -1)
	}
	r := p.create()
	answers, err := p.z.c.Multi(&zk.DeleteRequest{Path: p.path, Version: -1}, &r)
	if err != nil {
		return err
	}
	p.path = answers[1].String
	return nil
}
