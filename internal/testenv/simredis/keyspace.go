package simredis

import (
	"maps"
	"slices"
	"time"
)

// Journal is how far back a server can undo its writes.
const Journal = time.Second

// keyspace is the data at a time that does not change during a command.
type keyspace struct {
	data    map[string]entry
	now     time.Time
	writes  int
	journal []change
	changed func(key string)
	prompt  bool // see Server.EndPromptly
}

// entry is the value of a key: a string, a list, a hash or a sorted set.
type entry struct {
	text    string
	list    []string // nil for other types
	hash    map[string]string
	scores  map[string]float64
	expires int64 // Unix milliseconds; 0: never
}

// isString reports whether the value is a string.
func (e entry) isString() bool { return e.list == nil && e.hash == nil && e.scores == nil }

// change is a write, with the value of the key before it.
type change struct {
	at      time.Time
	key     string
	was     entry
	existed bool
}

func (e entry) clone() entry {
	e.list, e.hash, e.scores = slices.Clone(e.list), maps.Clone(e.hash), maps.Clone(e.scores)
	return e
}

// over reports whether a key has expired. In Redis that is a millisecond after its last one.
func (k *keyspace) over(e entry, now time.Time) bool {
	last := e.expires
	if k.prompt {
		last--
	}
	return e.expires > 0 && now.UnixMilli() > last
}

// get returns the value of a key.
func (k *keyspace) get(key string) (entry, bool) {
	e, ok := k.data[key]
	if ok && k.over(e, k.now) {
		k.drop(key)
		return entry{}, false
	}
	return e, ok
}

// put writes a key. A list, a hash or a set must not share memory with the earlier value.
func (k *keyspace) put(key string, e entry) {
	k.note(key)
	k.data[key] = e
	k.changed(key)
}

// drop removes a key, and reports whether it existed.
func (k *keyspace) drop(key string) bool {
	e, ok := k.data[key]
	if !ok {
		return false
	}
	k.note(key)
	delete(k.data, key)
	k.changed(key)
	return !k.over(e, k.now)
}

// note records the value of a key before a write, and now and then removes expired keys.
func (k *keyspace) note(key string) {
	was, existed := k.data[key]
	old := 0
	for old < len(k.journal) && k.now.Sub(k.journal[old].at) > Journal {
		old++
	}
	k.journal = append(k.journal[old:], change{k.now, key, was, existed})
	if k.writes++; k.writes%4096 == 0 {
		for name, e := range k.data {
			if k.over(e, k.now) {
				delete(k.data, name)
			}
		}
	}
}

// rewind undoes the writes after a time.
func (k *keyspace) rewind(to time.Time) (lost bool) {
	for i := len(k.journal) - 1; i >= 0 && k.journal[i].at.After(to); i-- {
		c := k.journal[i]
		lost = true
		if c.existed {
			k.data[c.key] = c.was
		} else {
			delete(k.data, c.key)
		}
	}
	k.journal = nil
	return lost
}
