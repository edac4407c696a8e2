package floor

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/leasehold-dev/leasehold/bench/resp"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

const (
	releaseScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
	tokenScript   = `if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end return 0`
	ttl           = "30000"
)

// Client locks on one or on a majority of several servers.
type Client struct {
	g *group
	Work
}

// Work is what a Client does.
type Work int

const (
	// Locks only sets and deletes keys.
	Locks Work = iota
	// Counts also draws a number from a counter, in the script that acquires.
	Counts
	// Lists does what Counts does, and calls that wait for the connection at the same
	// time go out as one script.
	Lists
)

// Open connects to the servers.
func Open(addrs []string, w Work) (*Client, error) {
	g, err := dial(addrs, releaseScript, tokenScript, listScript)
	if err != nil {
		return nil, err
	}
	return &Client{g, w}, nil
}

// Close ends the connections.
func (c *Client) Close() { c.g.close() }

// Pair returns the lock of that name.
func (c *Client) Pair(name string) load.Pair {
	return &pair{c: c, name: name, counter: "{" + name + "}:token", prefix: rand.Text()[:16], slot: newSlot()}
}

type pair struct {
	c             *Client
	name, counter string
	prefix        string // with count, a value nobody else uses
	count         uint64
	value         []byte
	command       []byte
	step          step
	slot          *slot
}

var errTaken = errors.New("taken")

var releaseHash, tokenHash = hash(releaseScript), hash(tokenScript)

func hash(script string) string {
	h := sha1.Sum([]byte(script))
	return hex.EncodeToString(h[:])
}

func (p *pair) Lock(context.Context) error {
	p.count++
	p.value = strconv.AppendUint(append(p.value[:0], p.prefix...), p.count, 36)
	switch p.c.Work {
	case Lists:
		p.step = step{resp.AppendArgs(p.step.keys[:0], p.name, p.counter), resp.AppendArgs(p.step.args[:0], string(p.value), ttl), true}
	case Counts:
		p.command = resp.AppendCommand(p.command[:0], "EVALSHA", tokenHash, "2", p.name, p.counter, string(p.value), ttl)
	default:
		p.command = resp.AppendCommand(p.command[:0], "SET", p.name, string(p.value), "NX", "PX", ttl)
	}
	return p.do()
}

func (p *pair) Unlock(context.Context) error {
	if p.c.Work == Lists {
		p.step = step{resp.AppendArgs(p.step.keys[:0], p.name), resp.AppendArgs(p.step.args[:0], string(p.value), ""), false}
	} else {
		p.command = resp.AppendCommand(p.command[:0], "EVALSHA", releaseHash, "1", p.name, string(p.value))
	}
	return p.do()
}

func (p *pair) do() error {
	if c := p.slot.ask(); p.c.Work == Lists {
		p.c.g.doStep(p.step, c)
	} else {
		p.c.g.do(p.command, c)
	}
	select {
	case ok := <-p.slot.done:
		if !ok {
			return errTaken
		}
		return nil
	case <-p.c.g.broken:
		return p.c.g.err
	}
}
