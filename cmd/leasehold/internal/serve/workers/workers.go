// Package workers carries out work in goroutines that stay for more.
package workers

import "sync/atomic"

// mostIdle is how many goroutines of a Pool wait for work.
const mostIdle = 128

// Pool carries out work side by side. It reuses goroutines:
// the stack of a new one has to grow first, which takes a sixth of the time of a call.
type Pool[W any] struct {
	do    func(W)
	ended <-chan struct{}
	work  chan W
	idle  atomic.Int64 // goroutines that wait
}

// New returns a pool that calls do. Goroutines of it wait for work until ended is closed. It can be
// used afterwards.
func New[W any](ended <-chan struct{}, do func(W)) *Pool[W] {
	return &Pool[W]{do: do, ended: ended, work: make(chan W)}
}

// Run has a goroutine carry out w, and does not wait for it.
func (p *Pool[W]) Run(w W) {
	select {
	case p.work <- w:
	default:
		go p.stay(w)
	}
}

// stay carries out w, and then what else there is.
func (p *Pool[W]) stay(w W) {
	for more := true; more; {
		p.do(w)
		if p.idle.Add(1) > mostIdle {
			more = false
		} else {
			select {
			case w = <-p.work:
			case <-p.ended:
				more = false
			}
		}
		p.idle.Add(-1)
	}
}
