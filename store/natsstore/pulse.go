package natsstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// pulse knows how a connection is. The server of a connection may be cut off from the others and
// still keep the connection up, which the client would then never leave: so pulse also notices
// that nothing was answered for long. Its methods are safe for concurrent use.
type pulse struct {
	mu    sync.Mutex
	since clock.Instant // of the first of the requests in a row that nobody has answered; 0: none
	up    context.Context
	lost  context.CancelFunc // ends up
}

// connected returns a context that ends when the connection is lost.
func (p *pulse) connected() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.up == nil {
		p.up, p.lost = context.WithCancel(context.Background())
	}
	return p.up
}

// disconnected ends the requests that are under way: their answers will not come.
func (p *pulse) disconnected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost != nil {
		p.lost()
		p.up, p.lost = nil, nil
	}
}

// heard takes in the outcome of a request. It returns true if nobody has answered for so long
// that the client should try another server. It then begins anew.
func (p *pulse) heard(err error, patience time.Duration) bool {
	now := clock.System().Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !unanswered(err):
		p.since = 0
	case p.since == 0:
		p.since = now
	case now.Sub(p.since) > patience:
		p.since = 0
		return true
	}
	return false
}

// unanswered reports whether a request has failed because no leader has answered it.
func unanswered(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrNoStreamResponse) || errors.As(err, &api) && api.Code == 503
}
