// Package audience keeps the functions that a store calls when a lease was broken.
package audience

import (
	"slices"
	"sync"
)

// Audience is a set of functions. It is safe for concurrent use, and the zero value is empty.
type Audience struct {
	mu    sync.Mutex
	funcs []*func(owner string)
}

// Add adds f until stop is called. A second call of stop does nothing.
func (a *Audience) Add(f func(owner string)) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.funcs = append(a.funcs, &f)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.funcs = slices.DeleteFunc(a.funcs, func(have *func(string)) bool { return have == &f })
	}
}

// Empty reports whether no function is added.
func (a *Audience) Empty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.funcs) == 0
}

// Tell calls all functions, one after the other, and returns after the last.
func (a *Audience) Tell(owner string) {
	a.mu.Lock()
	funcs := slices.Clone(a.funcs)
	a.mu.Unlock()
	for _, f := range funcs {
		(*f)(owner)
	}
}
