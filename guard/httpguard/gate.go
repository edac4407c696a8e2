package httpguard

import (
	"context"
	"sync"

	"github.com/leasehold-dev/leasehold/fence"
)

// gate orders the handlers of one resource by token. Handlers with the same token
// run together, a larger token runs after them, and a smaller one is refused.
type gate struct {
	forget bool // somebody else remembers tokens

	mu        sync.Mutex
	resources map[string]*entrance
}

// entrance is the state of one resource.
type entrance struct {
	highest fence.Token   // the largest that came, which may still wait
	current fence.Token   // of those inside
	inside  int           // handlers
	waiting int           // requests
	empty   chan struct{} // closed when the last handler has left
}

// enter waits until the handlers of smaller tokens have left. If it returns nil,
// the caller must call leave.
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
			return err // a larger token came earlier, or during the wait
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

// tidy removes an idle resource, so that the gate does not grow with every
// resource ever used. It does so only if a Memory remembers the tokens.
func (g *gate) tidy(resource string, e *entrance) {
	if g.forget && e.inside == 0 && e.waiting == 0 {
		delete(g.resources, resource)
	}
}
