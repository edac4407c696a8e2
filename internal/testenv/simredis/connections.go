package simredis

import (
	"slices"
	"strings"
)

// connections has the open connections, the oldest first.
type connections []*Conn

// invalidate pushes that a key has changed to the connections that track it.
func (cs connections) invalidate(key string) {
	for _, c := range cs {
		if c.tracks && (c.read[key] || slices.ContainsFunc(c.prefixes, func(p string) bool { return strings.HasPrefix(key, p) })) {
			delete(c.read, key)
			c.say(bulk("invalidate"), bulks([]string{key}))
		}
	}
}

// flushed pushes that all keys have changed to all connections that track keys.
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
