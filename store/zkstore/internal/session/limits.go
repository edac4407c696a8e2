package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"time"
)

// Limits are the limits of sessions, as the servers grant them.
type Limits struct {
	// Tick is the servers' tickTime.
	Tick time.Duration
	// Most is the longest timeout of a session.
	Most time.Duration
}

// Slack is how much longer the timeout of a session is than the TTL of its leases.
func (l Limits) Slack() time.Duration { return slackTicks * l.Tick }

// Class returns the TTL of the sessions in which leases of this TTL are kept.
func (l Limits) Class(ttl time.Duration) time.Duration {
	return (ttl + l.Tick - 1) / l.Tick * l.Tick
}

// MaxTTL returns the longest TTL of a lease, 0 if no session is long enough.
func (l Limits) MaxTTL() time.Duration { return max(0, (l.Most-l.Slack())/l.Tick*l.Tick) }

// askNextAfter is how long one server may take to tell its limits before the next is
// asked too.
const askNextAfter = 500 * time.Millisecond

// ErrStranger is the error of AskLimits if something else than ZooKeeper answers.
var ErrStranger = errors.New("it is no ZooKeeper")

// AskLimits asks the servers for the shortest and the longest session that they grant,
// one after the other, and without waiting long for one that does not answer. It takes
// the shortest for two ticks, which is what minSessionTimeout is by default.
//
// While the servers elect a leader, they refuse. So those that did are asked again as long
// as another one is silent, which may have been the leader. The error is that of the last one
// if all have refused.
func AskLimits(ctx context.Context, servers []string) (Limits, error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel() // ends what still asks
	type answer struct {
		server string
		limits Limits
		err    error
	}
	answers := make(chan answer, len(servers))
	next := time.NewTimer(0)
	defer next.Stop()
	todo, refused := slices.Clone(servers), []string(nil)
	for asked := 0; ; {
		select {
		case <-next.C:
			if len(todo) == 0 {
				todo, refused = refused, nil
			}
			if len(todo) == 0 {
				continue
			}
			server := todo[0]
			todo = todo[1:]
			asked++
			wg.Go(func() {
				l, err := limitsOf(ctx, server)
				answers <- answer{server, l, err}
			})
			next.Reset(askNextAfter)
		case a := <-answers:
			asked--
			if a.err == nil {
				return a.limits, nil
			}
			refused = append(refused, a.server)
			switch {
			case len(todo) > 0:
				next.Reset(0)
			case asked == 0:
				return Limits{}, fmt.Errorf("%s: %w", a.server, a.err)
			default:
				next.Reset(askNextAfter)
			}
		}
	}
}

func limitsOf(ctx context.Context, server string) (l Limits, err error) {
	least, err := granted(ctx, server, time.Millisecond)
	if err != nil {
		return l, err
	}
	l.Most, err = granted(ctx, server, math.MaxInt32*time.Millisecond)
	l.Tick = (least/2 + time.Millisecond - 1).Truncate(time.Millisecond)
	return l, err
}

// granted asks a server for a session with that timeout, ends it, and returns the timeout
// that the server granted.
func granted(ctx context.Context, server string, timeout time.Duration) (time.Duration, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	// length, version, zxid, timeout, session, password
	ask := binary.BigEndian.AppendUint32(nil, 44)
	ask = append(ask, make([]byte, 12)...)
	ask = binary.BigEndian.AppendUint32(ask, uint32(timeout.Milliseconds()))
	ask = append(ask, make([]byte, 8)...)
	ask = binary.BigEndian.AppendUint32(ask, 16)
	ask = append(ask, make([]byte, 16)...)
	if _, err := c.Write(ask); err != nil {
		return 0, err
	}
	var head [20]byte // length, version, timeout, session
	if _, err := io.ReadFull(c, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is not a ZooKeeper server, or it serves nobody: perhaps its ensemble has no majority")
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("it has not answered: %w", ctx.Err())
		}
		return 0, err
	}
	ms := int32(binary.BigEndian.Uint32(head[8:]))
	if ms <= 0 || binary.BigEndian.Uint32(head[:]) > 1<<10 {
		return 0, ErrStranger
	}
	end := binary.BigEndian.AppendUint32(nil, 8)
	end = binary.BigEndian.AppendUint32(end, 1)
	op := int32(opClose)
	end = binary.BigEndian.AppendUint32(end, uint32(op))
	_, err = c.Write(end)
	if err == nil {
		_, _ = io.Copy(io.Discard, c) // until the server has ended the session
	}
	return time.Duration(ms) * time.Millisecond, nil
}
