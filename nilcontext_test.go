package leasehold_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// A nil Context panics with a message that says so, before anything is sent or changed.
func TestNilContextPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		held := b.acquire(b.c.Mutex("held"))
		released := b.acquire(b.c.Mutex("released"))
		b.release(released)
		observed := leasehold.New(store.New(b.store), &leasehold.Options{Observer: func(context.Context, leasehold.Event) { t.Error("the observer was called, want a panic before") }})
		var none context.Context
		for what, call := range map[string]func(){
			"Acquire": func() { b.c.Mutex("a").Acquire(none) },
			"Try":     func() { b.c.Mutex("a").Try(none) },
			"Do":      func() { b.c.Mutex("a").Do(none, nil) },
			"Extend":  func() { held.Extend(none) },
			"Release": func() { held.Release(none) },

			"Downgrade":    func() { held.Downgrade(none) },
			"WaitFree":     func() { b.c.Operator().WaitFree(none, "a", nil) },
			"Break":        func() { b.c.Operator().Break(none, leasehold.BreakRequest{}) },
			"ReleaseOwner": func() { b.c.Operator().ReleaseOwner(none, "a", "o") },
			"Resize":       func() { b.c.Operator().Resize(none, "a", 1, 2) },

			"Run":     func() { b.c.Election("a").Run(none, nil) },
			"Leader":  func() { b.c.Election("a").Leader(none) },
			"Observe": func() { b.c.Election("a").Observe(none) },
			"Once":    func() { b.c.Once(none, "a", leasehold.Tick{}, nil) },

			"Acquire of several": func() { b.c.All().Acquire(none) },
			"Try of several":     func() { b.c.All().Try(none) },
			"Do of several":      func() { b.c.All().Do(none, nil) },
			"Release of several": func() { new(leasehold.Leases).Release(none) },

			"Release of a released lease": func() { released.Release(none) },
			"Try of an observed client":   func() { observed.Mutex("a").Try(none) },
		} {
			func() {
				defer func() {
					if r := recover(); r != "leasehold: nil Context" {
						t.Errorf("%s with a nil Context: panic %v, want \"leasehold: nil Context\"", what, r)
					}
				}()
				call()
			}()
		}
		if n := b.store.called("acquire") + b.store.called("renew") + b.store.called("release"); n != 3 {
			t.Errorf("%d calls of the store, want the 3 of the preparation", n)
		}
		b.release(held)
	})
}
