package objects

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Pacer holds back the requests of this client, all of them, after a server has asked for fewer
// (503 SlowDown): twice as long with each such answer in a row. A request for which there is
// no time left is not sent. Its methods are safe for concurrent use.
type Pacer struct {
	mu    sync.Mutex
	slow  int           // how many answers in a row have asked for fewer requests
	until clock.Instant // no request before
}

// A server that is asked less than once in maxPause is not overloaded by this client.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// Wait waits until the next request may be sent.
func (p *Pacer) Wait(ctx context.Context) error {
	for {
		p.mu.Lock()
		rest := p.until.Sub(clock.System().Now())
		p.mu.Unlock()
		if rest <= 0 {
			return ctx.Err()
		}
		if clock.Sleep(ctx, rest); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Heard takes in the answer to a request, or nil if there was none.
func (p *Pacer) Heard(res *http.Response) {
	asked := res != nil && (res.StatusCode == http.StatusServiceUnavailable || res.StatusCode == http.StatusTooManyRequests)
	now := clock.System().Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case asked && p.until <= now: // otherwise it is the answer to a request of before
		pause := min(maxPause, minPause<<min(p.slow, 6))
		if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
			pause = min(maxPause, max(pause, time.Duration(s)*time.Second))
		}
		p.slow++
		p.until = now.Add(pause/2 + rand.N(pause/2+1))
	case res != nil && res.StatusCode < 300:
		p.slow = 0
	}
}
