package etcdstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// members are the endpoints of a cluster. All requests go to one of them, until it
// fails. Each has a client of its own: the balancer of a common one goes on sending
// requests to a member that accepts them and does not answer.
type members struct {
	o    Options
	list []*member

	mu     sync.Mutex
	now    int             // index of the member that is asked
	while  context.Context // ends when now changes
	end    context.CancelFunc
	logged time.Time // when a failure was logged last
}

// logEvery is how often failures of members are logged: if all are down, every try fails.
const logEvery = 10 * time.Second

func newMembers(endpoints []string, o Options) *members {
	m := &members{o: o}
	m.while, m.end = context.WithCancel(context.Background())
	for _, e := range endpoints {
		m.list = append(m.list, newMember(e))
	}
	m.now = rand.IntN(len(m.list))
	return m
}

// String names the cluster by its endpoints.
func (m *members) String() string {
	var names []string
	for _, e := range m.list {
		names = append(names, e.endpoint)
	}
	return strings.Join(names, ",")
}

// current returns the member to ask, and a context that ends when it is another.
func (m *members) current() (*member, context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.list[m.now], m.while
}

// failed lets the next member be asked, unless from is not the current one any more.
func (m *members) failed(from *member, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list[m.now] != from || len(m.list) == 1 {
		return
	}
	m.now = (m.now + 1) % len(m.list)
	if now := time.Now(); now.Sub(m.logged) > logEvery {
		m.logged = now
		m.o.Logger.Warn("an etcd member failed, asking another one", "failed", from.endpoint, "now", m.list[m.now].endpoint, "err", store.Excerpt(why.Error()))
	}
	m.end()
	m.while, m.end = context.WithCancel(context.Background())
}

func (m *members) close() {
	for _, e := range m.list {
		e.close()
	}
}

// tryTime bounds the first try at each member. A member that takes longer for a request
// is paused, or cut off from the others.
const tryTime = time.Second

// run calls f, on one member after another, until it succeeds or trying again cannot
// help. ambiguous reports that one of the tries failed and may take effect later, or has. f
// has to be a request that can be repeated.
func (m *members) run(ctx context.Context, f func(ctx context.Context, c *client) error) (ambiguous bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, m.o.Timeout, store.ErrTimeLimit)
	defer cancel()
	var tries triesError
	for try := 0; ; try++ {
		at, _ := m.current()
		err := at.try(ctx, m.o, tryTime<<min(try/len(m.list), 4), f)
		if err == nil {
			return ambiguous, nil
		}
		is := faultOf(err)
		ambiguous = ambiguous || !is.certain
		if ctx.Err() == nil || len(tries) == 0 {
			tries.add(at.endpoint, err)
		}
		if !is.again {
			return ambiguous, err
		}
		if ctx.Err() == nil {
			m.failed(at, err)
		}
		if ctx.Err() != nil || try+1 >= len(m.list) && !clock.Sleep(ctx, rand.N(50*time.Millisecond<<min(try, 3))) {
			return ambiguous, &tries
		}
	}
}

// triesError has the last error of each member that was tried.
type triesError []tryError

type tryError struct {
	endpoint string
	err      error
}

func (t *triesError) add(endpoint string, err error) {
	for i := range *t {
		if (*t)[i].endpoint == endpoint {
			(*t)[i].err = err
			return
		}
	}
	*t = append(*t, tryError{endpoint, err})
}

func (t *triesError) Error() string {
	var all []string
	for _, e := range *t {
		is := faultOf(e.err)
		text := is.explain(e.err).Error()
		if is.outcome == store.TimedOut && is.advice == "" {
			text = "no answer in time"
		}
		all = append(all, fmt.Sprintf("%s: %s", e.endpoint, text))
	}
	return strings.Join(all, "; ")
}

// outcome is that of the member that was tried last.
func (t *triesError) outcome() store.Outcome { return faultOf((*t)[len(*t)-1].err).outcome }
