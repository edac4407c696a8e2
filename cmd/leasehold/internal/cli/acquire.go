package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

// acquire opens the store and waits for the lock, as flags and signals require.
// On every error it closes the store.
func (p *program) acquire(c *cobra.Command, o runFlags, sigs *signals, name string, options leasehold.LockOptions) (*store.Store, lease, error) {
	ctx, stop := sigs.during(context.Background())
	st, err := p.openStore(ctx, c)
	if err != nil {
		if sig := stop(); sig != 0 {
			err = endedBy(sig)
		}
		return nil, lease{}, err
	}
	l, err := p.wait(ctx, o, st, name, options, sigs.wait)
	sig := stop()
	if err == nil && sig != 0 { // granted in the very moment we were asked to go
		l.waiveMinHold()
		if released := l.Release(context.Background()); released != nil {
			p.voice.Note("warning: %s may stay taken for the TTL: %s", l.names(), p.voice.Text(released))
		}
	}
	if err == nil && sig == 0 {
		return st, l, nil
	}
	if closed := st.Close(); closed != nil {
		p.voice.Note("warning: closing the store: %v", closed)
	}
	var busy *leasehold.BusyError
	switch {
	case sig != 0:
		err = endedBy(sig)
	case errors.As(err, &busy):
		after := ""
		if o.wait > 0 {
			after = fmt.Sprintf(": gave up after %v", o.wait)
		}
		if nested(err) {
			after = ": held by a \"leasehold run\" that we run under" + after
		}
		p.voice.Note("%v", busyError(busy, after))
		err = &exitError{code: o.busyCode}
	}
	return nil, lease{}, err
}

// wait waits for the lock and reports the wait. It calls waits when it has to.
func (p *program) wait(ctx context.Context, o runFlags, st *store.Store, name string, options leasehold.LockOptions, waits func()) (lease, error) {
	var until time.Time
	if o.wait > 0 {
		until = time.Now().Add(o.wait)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	w := voice.NewWaiting(p.voice, name, max(o.wait, 0))
	defer w.End()
	var itself atomic.Bool
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options.OnWait = func(reason error) {
		waits()
		if !o.try && (nested(reason) || nestedReader(ctx, st, reason)) {
			itself.Store(true)
			cancel()
			return
		}
		w.Because(reason)
	}
	l, err := o.kindFlags.acquire(ctx, client(p, st), name, options, o.try)
	switch {
	case err == nil:
	case itself.Load():
		err = nestedError(name)
	case !until.IsZero() && !time.Now().Before(until):
		err = gaveUp(err, o.wait)
	}
	return l, err
}

// client returns a client for commands.
func client(p *program, st *store.Store) *leasehold.Client {
	return leasehold.New(st, &leasehold.Options{
		Logger: p.voice.Logger(),
		Trace:  func(context.Context) string { return os.Getenv(traceVar) },
	})
}

// gaveUp describes err to a user who chose how long to wait. A busy lock is
// described elsewhere.
func gaveUp(err error, wait time.Duration) error {
	var quorum *leasehold.QuorumError
	switch {
	case errors.Is(err, leasehold.ErrBusy):
		return err
	case errors.As(err, &quorum):
		err = quorum // without the end of our own wait
	}
	return fmt.Errorf("gave up after %v: %w", wait, err)
}

// releaseAndClose releases the locks, once --min-hold is over, closes the store and
// returns the code to exit with, given that of the command.
func (p *program) releaseAndClose(sigs *signals, st *store.Store, l lease, until time.Time, code int) int {
	if l.Err() != nil {
		releaseLost(sigs, st, l, until)
		return code
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !p.waitMinHold(sigs, l, until, st.Caps().MaxTTL) {
		cancel() // the store keeps the lock for the rest
	}
	err := l.Release(ctx)
	switch {
	case reachedMaxHold(err): // --min-hold is as long, and the command had ended before
	case errors.Is(err, leasehold.ErrLost):
		p.voice.Error("%v", err)
		code = runner.CodeLost
	case errors.Is(err, context.Canceled): // left to the store
		p.voice.Note("%s", strings.ReplaceAll(strings.TrimSuffix(err.Error(), "\n"+context.Canceled.Error()), "MinHold", "--min-hold"))
	case err != nil:
		p.voice.Note("warning: %s may stay taken for the TTL: %s", l.names(), p.voice.Text(err))
	}
	if err := st.Close(); err != nil {
		p.voice.Note("warning: closing the store: %v", err)
	}
	return code
}

// reachedMaxHold reports whether err is the loss of a lease to its --max-hold.
func reachedMaxHold(err error) bool {
	var lost *leasehold.LostError
	return errors.As(err, &lost) && lost.Cause == leasehold.LostMaxHold
}

// releaseLost releases a lost lease, once --min-hold is over, and closes the store. The
// lease ends by itself. A release may end it sooner, but waiting for servers that
// are out of reach must not outlast the lease.
func releaseLost(sigs *signals, st *store.Store, l lease, until time.Time) {
	patience := min(time.Until(l.Deadline())/2, time.Second)
	switch least := time.Until(until); {
	case least <= 0: // also if the command never ran
		l.waiveMinHold()
	case reachedMaxHold(l.Err()):
		patience = least + time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Release(ctx)
		st.Close()
	}()
	over := time.NewTimer(patience)
	defer over.Stop()
	for {
		select {
		case <-done:
			return
		case <-over.C:
			return
		case s := <-sigs.ch:
			if sig, ok := s.(syscall.Signal); ok && runner.Ends(sig) {
				cancel() // the store keeps the lock for the rest
			}
		}
	}
}
