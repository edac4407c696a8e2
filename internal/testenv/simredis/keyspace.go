package simredis

import (
	"slices"
	"time"
)

// Journal is for how long a server can undo its writes.
const Journal = time.Second

// keyspace is the data, as of a time that does not change during a command.
type keyspace struct {
	data    map[string]entry
	now     time.Time
	writes  int
	journal []change
	changed func(key string)
	prompt  bool // see Server.EndPromptly
}

// entry is what a key holds: a string or a list.
type entry struct {
	text    string
	list    []string // nil: a string
	expires int64    // Unix milliseconds; 0: never
}

// change is what a key held before it was written.
type change struct {
	at      time.Time
	key     string
	was     entry
	existed bool
}

func (e entry) clone() entry {
	e.list = slices.Clone(e.list)
	return e
}

// over says whether a key has expired. Redis says so in the millisecond after the last.
func (k *keyspace) over(e entry, now time.Time) bool {
	last := e.expires
	if k.prompt {
		last--
	}
	return e.expires > 0 && now.UnixMilli() > last
}

// get is what a key holds now.
func (k *keyspace) get(key string) (entry, bool) {
	e, ok := k.data[key]
	if ok && k.over(e, k.now) {
		k.drop(key)
		return entry{}, false
	}
	return e, ok
}

// put writes a key. A list must not share memory with the one before.
func (k *keyspace) put(key string, e entry) {
	k.note(key)
	k.data[key] = e
	k.changed(key)
}

// drop removes a key, and says whether it was there.
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

// note keeps what a key held, and now and then clears out what has expired.
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

// rewind undoes what was written after a time.
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
