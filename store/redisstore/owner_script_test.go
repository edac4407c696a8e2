package redisstore

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// sharedOwner makes two attempts of one owner do what they may do, one case after the other,
// and returns the cases in which the lock is held in the end.
func sharedOwner(t *testing.T, n *scripted) (held []string) {
	request := func(attempt string) store.Lease {
		return store.Lease{Name: "a", Owner: "deploy", Attempt: attempt, TTL: 30 * time.Second}
	}
	acquire := func(attempt string) driver.Question {
		return driver.Question{Op: quorum.Acquire, Lease: request(attempt)}
	}
	heal := func(attempt string) driver.Question {
		r := request(attempt)
		r.Require = store.CrashSafe
		return driver.Question{Op: quorum.Heal, Lease: r}
	}
	release := func(attempt string) driver.Question {
		return driver.Question{Op: quorum.Release, Lease: request(attempt), Tombstone: true}
	}
	undo := func(attempt string) driver.Question {
		q := release(attempt)
		q.Undo = true
		return q
	}
	for _, c := range []struct {
		name string
		do   []driver.Question
	}{
		{"undone by the attempt that made it", []driver.Question{acquire("one"), undo("one")}},
		{"undone by another", []driver.Question{acquire("one"), undo("two")}},
		{"undone by an attempt that joined", []driver.Question{acquire("one"), acquire("two"), undo("two")}},
		{"undone after another joined", []driver.Question{acquire("one"), acquire("two"), undo("one")}},
		{"released", []driver.Question{acquire("one"), release("one")}},
		{"released by an attempt that joined", []driver.Question{acquire("one"), acquire("two"), release("two")}},
		{"released late, when another has made it anew", []driver.Question{acquire("one"), release("one"), acquire("two"), release("one")}},
		{"asked for again", []driver.Question{acquire("one"), acquire("one"), undo("one")}},
		{"made anew, and released late twice", []driver.Question{acquire("one"), release("one"), acquire("two"), undo("two")}},
		{"after an attempt that was buried", []driver.Question{undo("one"), acquire("two")}},
		{"the attempt that was buried", []driver.Question{undo("one"), acquire("one")}},
		{"healed", []driver.Question{acquire("one"), release("one"), heal("two"), release("two")}},
		{"healed over the lease of another", []driver.Question{heal("two"), release("one")}},
	} {
		n.text(t, "FLUSHALL")
		n.text(t, "SET", script.MarkKey, openMark)
		n.ask(t, c.do...)
		if n.text(t, "EXISTS", "a") == "1" {
			held = append(held, c.name)
		}
	}
	return held
}

var sharedOwnerHeld = []string{
	"undone by another", "undone by an attempt that joined", "undone after another joined",
	"released late, when another has made it anew", "after an attempt that was buried", "healed over the lease of another",
}

// The clean-up of an attempt does not end the grants of other attempts of its owner.
func TestSharedOwner(t *testing.T) {
	if held := sharedOwner(t, onRedis(t)); !slices.Equal(held, sharedOwnerHeld) {
		t.Errorf("the lock is held in the end after\n%q, want\n%q", held, sharedOwnerHeld)
	}
}

// The cases above notice every change in how the scripts treat an attempt.
func TestSharedOwnerChanged(t *testing.T) {
	n := onRedis(t)
	for _, c := range []struct {
		name     string
		script   *script.Script
		old, new string
	}{
		{"an attempt that joins leaves it to the first", script.Acquire, "call('DEL', '{' .. key .. '}:made')", ""},
		{"a repeated request has joined", script.Acquire, "'}:made')[1] ~= attempt then", "'}:made') then"},
		{"the attempt that made it is not recorded", script.Acquire, "call('SET', '{' .. key .. '}:made', attempt, 'PX', LIFE)", ""},
		{"an attempt that joins counts as the one that made it", script.Acquire, "if held and attempt and call('MGET', '{' .. key .. '}:made')[1] ~= attempt then\n      call('DEL', '{' .. key .. '}:made')", "if held and attempt then\n      call('SET', '{' .. key .. '}:made', attempt)"},
		{"the attempt that healed it is not recorded", script.Heal, "call('SET', '{' .. key .. '}:made', attempt, 'PX', LIFE)", ""},
		{"a release ends what another made", script.Release, "elseif made or ending.undo", "elseif ending.undo"},
		{"an attempt undoes what others joined", script.Release, "made or ending.undo == '1' then", "made then"},
		{"a release ends nothing that others joined", script.Release, "elseif made or ending.undo == '1' then", "else"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n.change = change{script: c.script, old: c.old, new: c.new}.made(t)
			if held := sharedOwner(t, n); slices.Equal(held, sharedOwnerHeld) {
				t.Error("the cases do not notice the change")
			}
		})
	}
}
