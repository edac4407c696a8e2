package stories

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
)

// lock is the name of the lock in every story.
const lock = "lock"

// errTooSlow: the machine was not quick enough for the TTL.
var errTooSlow = errors.New("the machine is too slow for this story")

// stage is where one part is played: its servers, clients and network, which
// are gone when it is over. Any failure on it ends the play: methods do not
// return errors, so that a play reads like the story it is.
type stage struct {
	*timeline
	ctx     context.Context
	config  Config
	ttl     time.Duration // of the leases in this play
	closers []func()
}

// stopped is what a method panics with to end the play.
type stopped struct{ err error }

// perform plays on a stage of its own.
func perform(ctx context.Context, c Config, t *timeline, ttl time.Duration, play func(*stage) ending) (end ending, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := &stage{timeline: t, ctx: ctx, config: c, ttl: ttl}
	defer func() {
		for _, c := range slices.Backward(s.closers) {
			c()
		}
	}()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case stopped:
			err = r.err
		default:
			panic(r)
		}
	}()
	return play(s), nil
}

// fail ends the play.
func (s *stage) fail(format string, args ...any) { panic(stopped{fmt.Errorf(format, args...)}) }

func (s *stage) check(err error) {
	if err != nil {
		panic(stopped{err})
	}
}

// checkInstalled ends the play if err says that a server is missing, or another thing.
func (s *stage) checkInstalled(err, missing error) {
	if errors.Is(err, missing) {
		err = fmt.Errorf("%w: %w", ErrLeftOut, missing)
	}
	s.check(err)
}

// quickly ends the play as too slow unless ok.
func (s *stage) quickly(ok bool) {
	if !ok {
		s.check(errTooSlow)
	}
}

// atEnd has c called when the play is over; the last first.
func (s *stage) atEnd(c func()) { s.closers = append(s.closers, c) }

// does tells what somebody does, and happens what happens to somebody.
func (s *stage) does(actor, format string, args ...any)    { s.add(Step, actor, format, args...) }
func (s *stage) happens(actor, format string, args ...any) { s.add(Fault, actor, format, args...) }

// explain adds a comment.
func (s *stage) explain(format string, args ...any) { s.add(Note, "", format, args...) }

// until waits until ok.
func (s *stage) until(what string, ok func() bool) {
	for !ok() {
		s.pause(5*time.Millisecond, what)
	}
}

// soon is until for what takes no time, and is over with a lease: the play ends
// as too slow if it is not seen.
func (s *stage) soon(what string, ok func() bool) {
	end := time.Now().Add(2 * s.ttl)
	s.until(what, func() bool {
		s.quickly(time.Now().Before(end))
		return ok()
	})
}

// pause waits for d, for the sake of what.
func (s *stage) pause(d time.Duration, what string) {
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
		s.fail("waiting for %s: %w", what, context.Cause(s.ctx))
	}
}

// server starts a real server.
func (s *stage) server(settings ...string) *localredis.Server {
	r, err := localredis.Launch(localredis.Options{Args: settings})
	s.check(err)
	s.atEnd(r.Close)
	return r
}

// servers starts several that know nothing of each other.
func (s *stage) servers(n int) []*localredis.Server {
	all := make([]*localredis.Server, n)
	for i := range all {
		all[i] = s.server()
	}
	return all
}

// network puts a network that can be disturbed in front of a server.
func (s *stage) network(target string) *faultproxy.Proxy {
	p, err := faultproxy.Listen(target)
	s.check(err)
	s.atEnd(p.Close)
	return p
}

// asks sends a command to a server. No client of the story sends it.
func (s *stage) asks(r *localredis.Server, args ...string) string {
	v, err := r.Do(s.ctx, args...)
	if err != nil {
		s.fail("%s: %w", strings.Join(args, " "), err)
	}
	return localredis.Text(v)
}

// expired waits until the server has no such lock any more.
func (s *stage) expired(r *localredis.Server) {
	s.until("the lock's TTL", func() bool { return s.asks(r, "EXISTS", lock) == "0" })
	s.happens("server", "the TTL is over: the lock is free")
}

// url is a store of ours on these nodes. Each gets plenty of time to answer. Of
// several the longest TTL is short, because a node that may have forgotten locks
// is out for as long.
func (s *stage) url(nodes ...string) string {
	url := "redis://" + strings.Join(nodes, ",") + "?node_timeout=" + (s.ttl / 2).String()
	if len(nodes) > 1 {
		url += "&max_ttl=" + s.ttl.String()
	}
	return url
}

// millis is a duration as commands take it.
func millis(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// long is a TTL that does not end within a story.
const long = time.Minute
