package conn

import (
	"container/heap"
	"testing"
	"time"
)

// exchange models a client and a server that each do one thing at a time. Goroutines call one after
// the other; whatever waits is sent by one write, in lists of at most enough calls.
type exchange struct {
	congestion
	events          events
	now             time.Duration
	client, server  time.Duration // until when they are busy
	waiting, flight int
	answers         int
	oneWay          time.Duration
	perCall         time.Duration // what a call takes the server
	never           bool          // holds nothing back
}

// Times of the model, which are about those of one real machine.
const (
	callTakes  = 4 * time.Microsecond // a goroutine, from an answer to its next call
	writeTakes = 5 * time.Microsecond
	readTakes  = 3 * time.Microsecond // by either side, for what arrives at once
	listTakes  = 4 * time.Microsecond // by the server, besides perCall for each call
)

type event struct {
	at time.Duration
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(v any)        { *e = append(*e, v.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// after keeps one side busy for takes, as soon as it is idle, and calls do delay later.
func (x *exchange) after(side *time.Duration, takes, delay time.Duration, do func()) {
	*side = max(*side, x.now) + takes
	heap.Push(&x.events, event{*side + delay, do})
}

func (x *exchange) flush() {
	n := x.waiting
	if n == 0 || !x.never && x.holdsBack(x.flight, n) {
		return
	}
	x.waiting, x.flight = 0, x.flight+n
	sent := max(x.client, x.now)
	x.after(&x.client, writeTakes, x.oneWay, func() {
		lists := time.Duration((n + enough - 1) / enough)
		x.after(&x.server, readTakes+lists*listTakes+time.Duration(n)*x.perCall, x.oneWay, func() { x.answer(n, sent) })
	})
}

func (x *exchange) answer(n int, sent time.Duration) {
	x.answered(x.now - sent)
	x.flight -= n
	x.answers += n
	x.after(&x.client, readTakes, 0, x.flush)
	for range n {
		x.after(&x.client, callTakes, 0, x.call)
	}
}

func (x *exchange) call() {
	x.waiting++
	x.flush()
}

// run returns how many answers so many goroutines get.
func (x *exchange) run(goroutines int, d time.Duration) int {
	for range goroutines {
		x.after(&x.client, callTakes, 0, x.call)
	}
	for x.now < d {
		e := heap.Pop(&x.events).(event)
		x.now = e.at
		e.do()
	}
	return x.answers
}

// Holding calls back pays for a server nearby that 16 goroutines ask, and more. It costs nothing with any
// number of goroutines and at any distance, however long calls take the server.
func TestHoldingBackPays(t *testing.T) {
	for _, server := range []time.Duration{perCall / 4, perCall, 4 * perCall} {
		for _, trip := range []time.Duration{20, 50, 100, 200, 500, 1000, 2000} {
			trip *= time.Microsecond
			for goroutines := 2; goroutines <= 512; goroutines *= 2 {
				with := exchange{oneWay: trip / 2, perCall: server}
				without := exchange{oneWay: trip / 2, perCall: server, never: true}
				ratio := float64(with.run(goroutines, 20*time.Millisecond)) / float64(without.run(goroutines, 20*time.Millisecond))
				least := 0.95
				if goroutines >= 16 && trip == 20*time.Microsecond {
					least = 1.1
				}
				if ratio < least {
					t.Errorf("with %d goroutines, a round trip of %v and a server that takes %v for a call, there are %.2f times the answers if calls are held back, want %v times at least", goroutines, trip, server, ratio, least)
				}
			}
		}
	}
}
