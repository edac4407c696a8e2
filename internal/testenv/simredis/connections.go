package simredis

import (
	"slices"
	"strings"
)

// connections are those that are open, oldest first.
type connections []*Conn

// invalidate tells the connections that track a key that it has changed.
func (cs connections) invalidate(key string) {
	for _, c := range cs {
		if c.tracks && (c.read[key] || slices.ContainsFunc(c.prefixes, func(p string) bool { return strings.HasPrefix(key, p) })) {
			delete(c.read, key)
			c.say(bulk("invalidate"), bulks([]string{key}))
		}
	}
}

// flushed tells them that all keys have changed.
func (cs connections) flushed() {
	for _, c := range cs {
		if c.tracks {
			c.say(bulk("invalidate"), nullReply)
		}
	}
}

// publish sends a message to the subscribers, oldest connection first.
func (cs connections) publish(a []string) reply {
	n := int64(0)
	for _, c := range cs {
		if slices.Contains(c.channels, a[0]) {
			c.say(bulk("message"), bulk(a[0]), bulk(a[1]))
			n++
		}
	}
	return number(n)
}
