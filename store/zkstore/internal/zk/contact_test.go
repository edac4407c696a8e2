package zk

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// ensemble simulates a leader, a follower and a client that touches its session, in
// virtual time: all of them stand still now and then, and the network is slow now and
// then. Links keep the order of what they carry.
type ensemble struct {
	random *rand.Rand
	tick   time.Duration
	now    clock.Instant
	events events
	made   int // events

	// When the leader and the follower go on, if they stand still.
	leader, follower clock.Instant
	// links have the time at which the last message on them arrives.
	toFollower, toLeader, fromFollower, fromLeader clock.Instant

	reported bool          // the follower had a message of the session since its last reply
	touched  clock.Instant // when the leader last learned of it
	contact  contact
	waits    bool // for an answer
	// naive is the number of answers after which the session could have ended earlier
	// than if its life counted from the request.
	naive int
	// behind is the number of answers for which the contact concluded less than that.
	behind, answers int
}

func (e *ensemble) upTo(d time.Duration) time.Duration {
	return time.Duration(e.random.Int64N(int64(d)))
}

// slow returns a delay: short in most cases.
func (e *ensemble) slow(usual time.Duration) time.Duration {
	switch d := usual/2 + e.upTo(usual); e.random.IntN(400) {
	case 0:
		return d + e.upTo(e.tick)
	case 1:
		return d + e.upTo(4*e.tick)
	default:
		return d
	}
}

// carry delivers a message on a link.
func (e *ensemble) carry(link *clock.Instant, deliver func()) {
	*link = max(*link, e.now.Add(e.slow(e.tick/100)))
	e.at(*link, deliver)
}

// onLeader does something on the leader as soon as it does not stand still.
func (e *ensemble) onLeader(do func()) { e.on(&e.leader, do) }

func (e *ensemble) on(free *clock.Instant, do func()) {
	if e.now < *free {
		e.at(*free, func() { e.on(free, do) })
		return
	}
	if e.random.IntN(1500) == 0 {
		*free = e.now.Add(e.upTo(6 * e.tick))
		e.at(*free, func() { e.on(free, do) })
		return
	}
	do()
}

// ping is the leader's loop.
func (e *ensemble) ping() {
	e.onLeader(func() {
		e.carry(&e.toFollower, func() {
			e.on(&e.follower, func() {
				had := e.reported
				e.reported = false
				e.carry(&e.toLeader, func() {
					e.onLeader(func() {
						if had {
							e.touched = e.now
						}
					})
				})
			})
		})
		e.at(e.now.Add(e.tick/2), e.ping)
	})
}

// touch is the client's loop.
func (e *ensemble) touch() {
	e.at(e.now.Add(touchInterval(e.tick)), e.touch)
	if e.waits {
		return
	}
	e.waits = true
	sent := e.now
	e.carry(&e.fromLeader, func() { // client to follower
		e.on(&e.follower, func() {
			e.reported = true
			e.carry(&e.toLeader, func() {
				e.onLeader(func() {
					touched := e.touched
					e.carry(&e.toFollower, func() {
						e.on(&e.follower, func() {
							e.carry(&e.fromFollower, func() { e.answer(sent, touched) })
						})
					})
				})
			})
		})
	})
}

// answer reaches the client. touched was the leader's knowledge when it answered.
func (e *ensemble) answer(sent, touched clock.Instant) {
	e.waits = false
	e.contact.answered(exchange{sent, e.now}, true)
	e.answers++
	if touched.Add(e.contact.slack) < sent {
		e.naive++
	}
	if e.contact.proven < sent {
		e.behind++
	}
	if touched.Add(e.contact.slack) < e.contact.proven {
		panic(e.contact.proven.Sub(touched))
	}
}

func (e *ensemble) at(when clock.Instant, do func()) {
	e.made++
	heap.Push(&e.events, event{when, e.made, do})
}

type event struct {
	at clock.Instant
	n  int
	do func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].n < q[j].n
}

func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// What a contact concludes is never more than what the leader knew, however the leader,
// the follower and the network stand still; and in most cases it is all that was asked.
func TestContactConcludesNoMoreThanTheLeaderKnows(t *testing.T) {
	naive, behind, answers := 0, 0, 0
	for seed := range uint64(300) {
		e := &ensemble{random: rand.New(rand.NewPCG(seed, 1)), tick: time.Second, now: 1e9, touched: 1e9}
		e.contact = contact{tick: e.tick, slack: slackTicks * e.tick}
		e.contact.connected(exchange{e.now, e.now}, true)
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Fatalf("seed %d: the contact concluded that the leader had learned of the session %v later than it had", seed, r)
				}
			}()
			e.ping()
			e.touch()
			for e.now < 1e9+clock.Instant(200*e.tick) {
				next := heap.Pop(&e.events).(event)
				e.now = next.at
				next.do()
			}
		}()
		naive, behind, answers = naive+e.naive, behind+e.behind, answers+e.answers
	}
	if naive == 0 {
		t.Error("the leader always knew enough for what was asked: the simulation shows nothing")
	}
	t.Logf("%d answers: %d would have counted for too much, %d counted for less than was asked", answers, naive, behind)
	if behind > answers/2 {
		t.Errorf("%d of %d answers counted for less than was asked", behind, answers)
	}
}

// A session whose answers come back at once is proven up to each request.
func TestContactOfAQuickLeader(t *testing.T) {
	const tick = time.Second
	c := contact{tick: tick, slack: slackTicks * tick}
	c.connected(exchange{1e9, 1e9}, true)
	for at := clock.Instant(1e9); at < 60e9; at = at.Add(touchInterval(tick)) {
		c.answered(exchange{at, at.Add(tick / 4)}, true)
		if c.proven != at {
			t.Fatalf("%v after the start the session is proven up to %v before", at.Sub(1e9), at.Sub(c.proven))
		}
	}
}

// An answer that no majority has accepted proves nothing, nor do those on a connection to
// a leader whose majority is not yet known.
func TestContactNeedsAWrite(t *testing.T) {
	const tick = time.Second
	c := contact{tick: tick, slack: slackTicks * tick}
	c.connected(exchange{1e9, 1e9}, true)
	c.connected(exchange{5e9, 5e9}, false)
	for at := clock.Instant(6e9); at < 20e9; at = at.Add(touchInterval(tick)) {
		c.answered(exchange{at, at.Add(tick / 100)}, false)
	}
	if c.proven != 1e9 {
		t.Fatalf("without a write since, the session is proven up to %v after it was made", c.proven.Sub(1e9))
	}
	c.answered(exchange{20e9, 20e9 + 1}, true)
	if c.proven != 20e9 {
		t.Fatalf("a write proved the session up to %v after it was made, want %v", c.proven.Sub(1e9), clock.Instant(20e9).Sub(1e9))
	}
}
