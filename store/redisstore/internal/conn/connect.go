package conn

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
)

const (
	// firstRetry is the pause before a failed server is tried again.
	firstRetry = 50 * time.Millisecond
	// eagerRetries is how often a server is tried with at most twice that pause. A server
	// is often away for a moment only, and other clients may wait for what it has yet to
	// receive. Later the pause doubles up to a second.
	eagerRetries = 20
)

// retryPause returns the pause after a failure, given the number of failures in a row
// before it.
func retryPause(failures int) time.Duration {
	if failures <= eagerRetries {
		return firstRetry << min(failures, 1)
	}
	return min(firstRetry<<min(failures-eagerRetries+1, 5), time.Second)
}

// UseLocked begins to use a connection, at the given time.
func (p *Peer[C]) UseLocked(w *Pipe[C], now time.Time) {
	recovered := p.down != nil
	p.failures, p.down, p.pipe, p.reached = 0, nil, w, true
	p.owner.ConnectedLocked(now, recovered)
	w.startLocked(now)
}

// setDownLocked refuses calls until the pause is over. If an answer was late, waited is
// how long it was awaited.
func (p *Peer[C]) setDownLocked(err error, waited, pause time.Duration) {
	p.retryAt = time.Now().Add(pause)
	p.down = p.owner.DownLocked(err, waited, p.retryAt)
}

// Open connects w to the server at a, and has h greet it. The connection ends with p.
// Config.ConnectTimeout bounds all of it.
func (p *Peer[C]) Open(ctx context.Context, w *Pipe[C], a config.Address, h Handler[C]) error {
	ctx, cancel := context.WithTimeout(ctx, p.config.ConnectTimeout)
	defer cancel()
	conn, err := Dial(ctx, a, p.config)
	if err != nil {
		return err
	}
	p.Attach(w, a.Host, conn, h)
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	if err = h.Greet(ctx); err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		w.forget()
		conn.Close()
		if p.ctx.Err() != nil {
			err = p.ctx.Err()
		}
	}
	return err
}

// Retire reports whether a call has yet to be sent or answered. Once it was called, calls are
// sent without Flush.
func (p *Peer[C]) Retire() (busy bool) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.retiring = true
	p.Wake()
	return p.Waiting.n > 0 || p.pipe != nil && p.pipe.flight.n > 0
}

// Close ends the connection, or an attempt to make one, and waits for the goroutines. Calls
// that are still enqueued are refused with why, and so are all later ones.
func (p *Peer[C]) Close(why error) {
	p.Mu.Lock()
	p.closed = why
	p.Wake()
	p.Mu.Unlock()
	p.cancel()
	p.Mu.Lock()
	if p.pipe != nil {
		p.pipe.inline.resumeLocked()
	}
	p.Mu.Unlock()
	p.all.Wait()
}

// ReachedLocked reports whether there was a connection at some time.
func (p *Peer[C]) ReachedLocked() bool { return p.reached }
