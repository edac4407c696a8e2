package httpguard

import (
	"context"
	"sync"

	"github.com/leasehold-dev/leasehold/fence"
)

// gate lets handlers of one resource in, by token: those of one token together,
// a larger one after them, a smaller one never again.
type gate struct {
	forget bool // somebody else remembers tokens

	mu        sync.Mutex
	resources map[string]*entrance
}

// entrance is what is known of one resource.
type entrance struct {
	highest fence.Token   // the largest that came, which may still wait
	current fence.Token   // of those inside
	inside  int           // handlers
	waiting int           // requests
	empty   chan struct{} // closed when the last handler has left
}

// enter waits for handlers of smaller tokens to leave. On nil, leave is owed.
func (g *gate) enter(ctx context.Context, resource string, token fence.Token) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.resources[resource]
	if e == nil {
		e = &entrance{empty: make(chan struct{})}
		g.resources[resource] = e
	}
	e.waiting++
	defer func() {
		e.waiting--
		g.tidy(resource, e)
	}()
	for {
		highest, err := fence.Admit(resource, e.highest, token)
		if err != nil {
			return err // a larger one came while this one waited, or before
		}
		e.highest = highest
		if e.inside == 0 || e.current == token {
			e.current = token
			e.inside++
			return nil
		}
		empty := e.empty
		g.mu.Unlock()
		select {
		case <-empty:
			g.mu.Lock()
		case <-ctx.Done():
			g.mu.Lock()
			return context.Cause(ctx)
		}
	}
}

func (g *gate) leave(resource string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.resources[resource]
	e.inside--
	if e.inside == 0 {
		close(e.empty)
		e.empty = make(chan struct{})
	}
	g.tidy(resource, e)
}

// tidy keeps the gate from growing with every resource there ever was. It is the
// last to forget a token: nobody else may remember it.
func (g *gate) tidy(resource string, e *entrance) {
	if g.forget && e.inside == 0 && e.waiting == 0 {
		delete(g.resources, resource)
	}
}
