package httpguard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

// errOccupied means that a request waited at the gate for too long.
var errOccupied = errors.New("requests with other tokens still run")

// gate orders the handlers of one resource by token. Handlers with the same token run
// together, those with different tokens in turn, and a token that is smaller than an
// accepted one is refused. A token that only waits or runs refuses nothing, since the
// handler may yet refuse it.
type gate struct {
	forget bool // a Memory remembers tokens
	grace  time.Duration

	mu        sync.Mutex
	resources map[string]*entrance
}

// entrance is the state of one resource.
type entrance struct {
	highest fence.Token // the largest that was accepted
	unsaved bool        // highest is not in the Memory
	inside  map[*visit]bool
	current fence.Token // of the visits inside
	turn    int         // counts the changes of current
	queue   []*visit    // in the order of arrival
	grace   *time.Timer // until the visits inside are interrupted, while a larger token waits
}

// visit is one request at the gate.
type visit struct {
	resource  string
	token     fence.Token
	interrupt func() // makes its handler return, as far as possible
	verdict   chan error
}

// enter waits until v is admitted. If it returns nil, the caller must call leave.
func (g *gate) enter(ctx context.Context, v *visit) error {
	v.verdict = make(chan error, 1)
	g.mu.Lock()
	e := g.resources[v.resource]
	if e == nil {
		e = &entrance{inside: map[*visit]bool{}}
		g.resources[v.resource] = e
	}
	e.queue = append(e.queue, v)
	g.advanceLocked(v.resource, e)
	g.mu.Unlock()

	patience := time.NewTimer(3 * g.grace)
	defer patience.Stop()
	var err error
	select {
	case err := <-v.verdict:
		return err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-patience.C:
		err = errOccupied
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range e.queue {
		if w == v {
			e.queue = append(e.queue[:i:i], e.queue[i+1:]...)
			g.advanceLocked(v.resource, e)
			return err
		}
	}
	return <-v.verdict // it was admitted or refused meanwhile
}

// advanceLocked refuses and admits waiting visits.
func (g *gate) advanceLocked(resource string, e *entrance) {
	waiting := e.queue
	e.queue = nil
	for i, v := range waiting {
		switch _, err := fence.Admit(resource, e.highest, v.token); {
		case err != nil:
			v.verdict <- err
		case len(e.inside) == 0:
			e.stopGrace()
			e.current = v.token
			e.turn++
			fallthrough
		case v.token == e.current && !larger(e.queue, v.token) && !larger(waiting[i+1:], v.token):
			e.inside[v] = true
			v.verdict <- nil
		default:
			e.queue = append(e.queue, v)
		}
	}
	switch {
	case len(e.inside) == 0 || !larger(e.queue, e.current):
		e.stopGrace()
	case e.grace == nil:
		turn := e.turn
		e.grace = time.AfterFunc(g.grace, func() { g.interrupt(e, turn) })
	}
	if len(e.inside) == 0 && len(e.queue) == 0 && (e.highest == 0 || g.forget && !e.unsaved) {
		delete(g.resources, resource)
	}
}

// larger reports whether a token larger than this one waits.
func larger(queue []*visit, token fence.Token) bool {
	for _, v := range queue {
		if v.token > token {
			return true
		}
	}
	return false
}

func (e *entrance) stopGrace() {
	if e.grace != nil {
		e.grace.Stop()
		e.grace = nil
	}
}

// interrupt interrupts the visits of a turn that still are inside, if a larger token
// still waits.
func (g *gate) interrupt(e *entrance, turn int) {
	g.mu.Lock()
	var late []*visit
	if e.turn == turn && larger(e.queue, e.current) {
		for v := range e.inside {
			late = append(late, v)
		}
	}
	g.mu.Unlock()
	for _, v := range late {
		v.interrupt()
	}
}

// accept raises the largest accepted token of a resource that has a visit inside. saved
// reports whether the Memory knows it.
func (g *gate) accept(resource string, token fence.Token, saved bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.resources[resource]
	if token < e.highest {
		return
	}
	e.highest, e.unsaved = token, !saved
	g.advanceLocked(resource, e)
}

// highest returns the largest accepted token that the gate remembers, or zero.
func (g *gate) highest(resource string) fence.Token {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.resources[resource]; e != nil {
		return e.highest
	}
	return 0
}

// leave ends a visit that was admitted. Only the first call has an effect.
func (g *gate) leave(v *visit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.resources[v.resource]
	if e == nil || !e.inside[v] {
		return
	}
	delete(e.inside, v)
	g.advanceLocked(v.resource, e)
}
