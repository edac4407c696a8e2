package history

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// a semaphore of 3, and a read-write lock.
var kinds = []store.Kind{store.Semaphore(3), store.ReadWrite}

const semaphore, readWrite = 0, 1

// permits adds a whole acquire of a semaphore; the TTL is a second.
func (s *story) permits(proc int, weight, slot int64, asked, granted int, token fence.Token) {
	s.weight, s.slot = weight, slot
	s.grant(proc, semaphore, asked, granted, asked+1000, token)
}

// reader and writer add whole acquires of a read-write lock.
func (s *story) reader(proc, asked, granted int, token fence.Token) {
	s.weight, s.slot = 1, 0
	s.grant(proc, readWrite, asked, granted, asked+1000, token)
}

func (s *story) writer(proc, asked, granted int, token fence.Token) {
	s.weight, s.slot = store.ReadWriteLimit, 0
	s.grant(proc, readWrite, asked, granted, asked+1000, token)
}

// soundKinds are stories of sound locks that several can hold.
var soundKinds = []namedStory{
	{"three hold a semaphore of 3, and a fourth comes in time", func(s *story) {
		s.permits(1, 1, 0, 0, 5, 10)
		s.permits(2, 1, 1, 1, 6, 11)
		s.permits(3, 1, 2, 2, 7, 12)
		s.release(2, 100, 110)
		s.permits(4, 1, 1, 50, 105, 13)
	}, nil},
	{"weights that fit", func(s *story) {
		s.permits(1, 2, 0, 0, 5, 10)
		s.permits(2, 1, 1, 1, 6, 11)
	}, nil},
	{"tokens that differ between slots in any way", func(s *story) {
		s.permits(1, 1, 0, 0, 5, 20)
		s.permits(2, 1, 1, 6, 7, 10)
	}, nil},
	{"writes of two slots in any order", func(s *story) {
		s.permits(1, 1, 0, 0, 5, 10)
		s.permits(2, 1, 1, 6, 7, 11)
		s.slot = 1
		s.wrote(2, semaphore, 1, 11)
		s.slot = 0
		s.wrote(1, semaphore, 1, 10)
	}, nil},
	{"readers together, with one token, between two writers", func(s *story) {
		s.writer(1, 0, 5, 10)
		s.release(1, 100, 110)
		s.reader(2, 50, 112, 11)
		s.reader(3, 50, 113, 11)
		s.release(2, 200, 210)
		s.release(3, 220, 230)
		s.writer(1, 150, 225, 12)
	}, nil},
	{"readers after a writer that was paused", func(s *story) {
		s.writer(1, 0, 5, 10)
		s.reader(2, 900, 1005, 11)
		s.lost(1, 1500, false)
	}, nil},
	{"a reader after a writer that was killed", func(s *story) {
		s.writer(1, 0, 5, 10)
		s.Kill(1, 1, s.at(100))
		s.reader(2, 50, 101, 11)
	}, nil},
}

// soundOverSeveral are stories of readers that are sound only over several servers.
var soundOverSeveral = []namedStory{
	{"a later reader with a smaller token", func(s *story) {
		s.reader(1, 0, 5, 10)
		s.reader(2, 6, 8, 9)
	}, nil},
	{"a reader that comes after another reader's larger token", func(s *story) {
		s.reader(1, 0, 5, 10)
		s.reader(2, 6, 8, 12)
		s.wrote(2, readWrite, 1, 12)
		s.wrote(1, readWrite, 1, 10)
	}, nil},
}

// brokenKinds are stories of broken stores, each broken in one way.
var brokenKinds = []namedStory{
	{"a fourth permit of three", func(s *story) {
		s.permits(1, 1, 0, 0, 5, 10)
		s.permits(2, 1, 1, 1, 6, 11)
		s.permits(3, 1, 2, 2, 7, 12)
		s.weight, s.slot = 1, 0
		s.permits(4, 1, 0, 50, 60, 13)
	}, []string{"permits", "slots", "steps"}},
	{"two heavy holders", func(s *story) {
		s.permits(1, 2, 0, 0, 5, 10)
		s.permits(2, 2, 1, 1, 6, 11)
	}, []string{"permits"}},
	{"a permit given again before its holder was done", func(s *story) {
		s.permits(1, 3, 0, 0, 5, 10)
		s.permits(2, 1, 1, 50, 99, 11)
		s.release(1, 100, 110)
	}, []string{"permits"}},
	{"the same slot twice", func(s *story) {
		s.permits(1, 1, 1, 0, 5, 10)
		s.permits(2, 1, 1, 1, 6, 11)
	}, []string{"slots", "steps"}},
	{"a slot that the lock does not have", func(s *story) {
		s.permits(1, 1, 3, 0, 5, 10)
	}, []string{"slots"}},
	{"a smaller token in the same slot", func(s *story) {
		s.permits(1, 1, 2, 0, 5, 10)
		s.release(1, 100, 110)
		s.permits(2, 1, 2, 120, 130, 9)
	}, []string{"tokens", "steps"}},
	{"a write in time after a later holder's of the slot", func(s *story) {
		s.permits(1, 1, 2, 0, 5, 10)
		s.release(1, 100, 110)
		s.permits(2, 1, 2, 50, 120, 11)
		s.wrote(2, semaphore, 1, 11)
		s.wrote(1, semaphore, 1, 10)
	}, []string{"writes"}},
	{"a writer beside a reader", func(s *story) {
		s.reader(1, 0, 5, 10)
		s.writer(2, 1, 6, 11)
	}, []string{"readers and writers"}},
	{"a reader beside a writer", func(s *story) {
		s.writer(1, 0, 5, 10)
		s.reader(2, 50, 99, 11)
		s.release(1, 100, 110)
	}, []string{"readers and writers"}},
	{"a reader with the token of the writer before it", func(s *story) {
		s.writer(1, 0, 5, 10)
		s.reader(2, 900, 1005, 10)
	}, []string{"tokens"}},
	{"a reader with a smaller token than a paused writer's", func(s *story) {
		s.writer(1, 0, 5, 10)
		s.reader(2, 900, 1005, 9)
	}, []string{"tokens"}},
	{"a writer with the token of readers", func(s *story) {
		s.reader(1, 0, 5, 10)
		s.release(1, 100, 110)
		s.writer(2, 120, 130, 10)
	}, []string{"tokens"}},
	{"a later reader with a smaller token", func(s *story) {
		s.reader(1, 0, 5, 10)
		s.reader(2, 6, 8, 9)
	}, []string{"tokens"}},
	{readersApart, func(s *story) {
		s.reader(1, 0, 5, 10)
		s.reader(2, 6, 8, 12)
		s.wrote(2, readWrite, 1, 12)
		s.wrote(1, readWrite, 1, 10)
	}, []string{"writes"}},
}

// The judge finds what a broken semaphore or read-write lock does, and nothing in what a
// sound one does.
func TestKinds(t *testing.T) {
	judge(t, ofKinds(false, slices.Concat(soundKinds, brokenKinds)))
}

// ofKinds are stories of locks of those kinds, on one or several servers.
func ofKinds(several bool, stories []namedStory) (all []namedStory) {
	for _, c := range stories {
		tell := c.tell
		c.tell = func(s *story) {
			s.Kinds, s.Several = kinds, several
			tell(s)
		}
		all = append(all, c)
	}
	return all
}

// Over several servers, readers are not compared with readers. All else is as on one server.
func TestKindsOverSeveral(t *testing.T) {
	all := slices.Clone(soundOverSeveral)
	for _, c := range brokenKinds {
		if !slices.ContainsFunc(soundOverSeveral, func(s namedStory) bool { return s.name == c.name }) && c.name != readersApart {
			all = append(all, c)
		}
	}
	judge(t, ofKinds(true, all))
}

// readersApart is a story that is broken on one server only.
const readersApart = "a reader refused in time, because of another reader's token"

// A waiter is idle only if there are permits for it and for all waiters before it.
func TestIdleKinds(t *testing.T) {
	for _, c := range []struct {
		name string
		tell func(*story)
		want int // milliseconds
	}{
		{"there is a permit left", func(s *story) {
			s.permits(1, 2, 0, 0, 5, 10)
			s.weight = 1
			s.waits(2, semaphore, 10)
			s.gives(2, 510)
		}, 500},
		{"all permits are taken", func(s *story) {
			s.permits(1, 2, 0, 0, 5, 10)
			s.permits(3, 1, 1, 0, 5, 10)
			s.weight = 1
			s.waits(2, semaphore, 10)
			s.gives(2, 510)
		}, 0},
		{"too few permits for the waiter", func(s *story) {
			s.permits(1, 2, 0, 0, 5, 10)
			s.weight = 2
			s.waits(2, semaphore, 10)
			s.gives(2, 510)
		}, 0},
		{"too few permits for the first waiter", func(s *story) {
			s.permits(1, 2, 0, 0, 5, 10)
			s.weight = 2
			s.waits(2, semaphore, 10)
			s.weight = 1
			s.waits(3, semaphore, 20)
			s.gives(2, 410)
			s.gives(3, 510)
		}, 100},
		{"readers could join", func(s *story) {
			s.reader(1, 0, 5, 10)
			s.weight = 1
			s.waits(2, readWrite, 10)
			s.gives(2, 310)
		}, 300},
		{"readers wait behind a writer", func(s *story) {
			s.reader(1, 0, 5, 10)
			s.weight = store.ReadWriteLimit
			s.waits(2, readWrite, 10)
			s.weight = 1
			s.waits(3, readWrite, 20)
			s.release(1, 400, 402)
			s.gives(2, 450)
			s.gives(3, 451)
		}, 49},
		{"a dead holder's permits are still taken", func(s *story) {
			s.permits(1, 3, 0, 0, 5, 10)
			s.weight = 1
			s.waits(2, semaphore, 10)
			s.Kill(1, 1, s.at(100))
			s.gives(2, 1400)
		}, 1400 - 100 - 1000 - 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t)
			s.Kinds = kinds
			c.tell(s)
			_, got := idleTime{s.History, Idleness{TTL: time.Second, Grace: 100 * time.Millisecond}}.violations()
			if want := time.Duration(c.want) * time.Millisecond; got != want {
				t.Errorf("the longest wait for a free lock is %v, want %v", got, want)
			}
		})
	}
}
