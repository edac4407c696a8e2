package zk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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

// ErrStranger is the error if something else than ZooKeeper answers.
var ErrStranger = errors.New("it is no ZooKeeper")

// AskLimits asks a server for the shortest and the longest session that it grants. It takes the shortest
// for two ticks, which is what minSessionTimeout is by default. A server refuses while the ensemble elects
// a leader.
func AskLimits(ctx context.Context, server string) (l Limits, err error) {
	least, err := granted(ctx, server, time.Millisecond)
	if err == nil {
		l.Tick = (least/2 + time.Millisecond - 1).Truncate(time.Millisecond)
		l.Most, err = granted(ctx, server, math.MaxInt32*time.Millisecond)
	}
	if err != nil {
		return l, fmt.Errorf("%s: %w", server, err)
	}
	return l, nil
}

// granted asks a server for a session with that timeout, ends it, and returns the timeout
// that the server granted.
func granted(ctx context.Context, server string, timeout time.Duration) (time.Duration, error) {
	c, err := dial(ctx, server)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	in, w, err := meet(ctx, c, 0, handshake{timeout: timeout})
	if end := int32(opClose); err == nil && writePacket(c, appendInt(appendInt(nil, 1), end)) == nil {
		_, _ = io.Copy(io.Discard, in) // until the server has ended the session
	}
	return w.timeout, err
}
