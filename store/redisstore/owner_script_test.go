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

// sharedOwner plays what two attempts of one owner may do, one case after the other, and
// says in which of them the lock is there in the end.
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
		return driver.Question{Op: quorum.Release, Lease: request(attempt), Tomb: true}
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
		{"undone by whom it was made", []driver.Question{acquire("one"), undo("one")}},
		{"undone by another", []driver.Question{acquire("one"), undo("two")}},
		{"undone by one that joined", []driver.Question{acquire("one"), acquire("two"), undo("two")}},
		{"undone after another joined", []driver.Question{acquire("one"), acquire("two"), undo("one")}},
		{"released", []driver.Question{acquire("one"), release("one")}},
		{"released by one that joined", []driver.Question{acquire("one"), acquire("two"), release("two")}},
		{"released late, when another has made it anew", []driver.Question{acquire("one"), release("one"), acquire("two"), release("one")}},
		{"asked for again", []driver.Question{acquire("one"), acquire("one"), undo("one")}},
		{"made anew, and released late twice", []driver.Question{acquire("one"), release("one"), acquire("two"), undo("two")}},
		{"after an attempt that was buried", []driver.Question{undo("one"), acquire("two")}},
		{"the attempt that was buried", []driver.Question{undo("one"), acquire("one")}},
		{"healed", []driver.Question{acquire("one"), release("one"), heal("two"), release("two")}},
		{"healed over another's", []driver.Question{heal("two"), release("one")}},
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
	"undone by another", "undone by one that joined", "undone after another joined",
	"released late, when another has made it anew", "after an attempt that was buried", "healed over another's",
}

// Attempts of one owner do not end each other's grants by what they clean up.
func TestSharedOwner(t *testing.T) {
	if held := sharedOwner(t, onRedis(t)); !slices.Equal(held, sharedOwnerHeld) {
		t.Errorf("the lock is there in the end:\n%q, want\n%q", held, sharedOwnerHeld)
	}
}

// Every change of what the scripts make of an attempt is noticed.
func TestSharedOwnerChanged(t *testing.T) {
	n := onRedis(t)
	for _, c := range []struct {
		name     string
		script   *script.Script
		old, new string
	}{
		{"who joins leaves it to the first", script.Acquire, "call('DEL', '{' .. key .. '}:made')", ""},
		{"a repeated request has joined", script.Acquire, "'}:made')[1] ~= attempt then", "'}:made') then"},
		{"it is not noted who made it", script.Acquire, "call('SET', '{' .. key .. '}:made', attempt, 'PX', LIFE)", ""},
		{"who joins has made it", script.Acquire, "if held and attempt and call('MGET', '{' .. key .. '}:made')[1] ~= attempt then\n      call('DEL', '{' .. key .. '}:made')", "if held and attempt then\n      call('SET', '{' .. key .. '}:made', attempt)"},
		{"what is healed is not noted", script.Heal, "call('SET', '{' .. key .. '}:made', attempt, 'PX', LIFE)", ""},
		{"a release ends what another made", script.Release, "elseif made or undo", "elseif undo"},
		{"an attempt undoes what others know of", script.Release, "made or undo == '1' then", "made then"},
		{"a release ends nothing that others joined", script.Release, "elseif made or undo == '1' then", "else"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n.change = change{script: c.script, old: c.old, new: c.new}.made(t)
			if held := sharedOwner(t, n); slices.Equal(held, sharedOwnerHeld) {
				t.Error("not noticed")
			}
		})
	}
}
