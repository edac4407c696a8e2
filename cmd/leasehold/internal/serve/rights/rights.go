// Package rights says what a client of the server may do with locks, by their names.
package rights

import (
	"context"
	"slices"
	"strings"
)

// Right is something that a client may do with a lock.
type Right uint8

// The rights. None of them includes another one.
const (
	Look  Right = 1 << iota // see who holds it and who waits
	Lock                    // acquire, wait, renew, release, downgrade, resize
	Break                   // break the lease of another client
)

var names = map[Right]string{Look: "look", Lock: "lock", Break: "break"}

// String returns the right as a file of rights spells it.
func (r Right) String() string { return names[r] }

// rule gives rights to all locks whose names start with prefix.
type rule struct {
	prefix string
	rights Right
}

// Client sends requests, and may do what its rules say.
type Client struct {
	// Name is what the audit and the description of a holder call the client. It is empty
	// if clients are not told apart.
	Name string
	// Limits bound what the client uses of the server.
	Limits Limits
	rules  []rule
}

// Limits bound what a client uses of a server. Zero means no limit.
type Limits struct {
	RequestsPerSecond int `json:"requests_per_second"`
	// Streams are holds and waits at a time, and Names the locks that they are about.
	Streams int `json:"streams"`
	Names   int `json:"names"`
}

// ReadOnly returns c without the rights that change locks.
func (c *Client) ReadOnly() *Client {
	only := *c
	only.rules = slices.Clone(c.rules)
	for i := range only.rules {
		only.rules[i].rights &= Look
	}
	return &only
}

// Anyone returns a client that may do everything, or only look.
func Anyone(readOnly bool) *Client {
	c := &Client{rules: []rule{{"", Look | Lock | Break}}}
	if readOnly {
		c.rules[0].rights = Look
	}
	return c
}

// May reports whether the client has right r to the lock called name. The name is that of the
// lock, byte by byte, after all decoding.
func (c *Client) May(r Right, name string) bool {
	for _, rule := range c.rules {
		if rule.rights&r == r && strings.HasPrefix(name, rule.prefix) {
			return true
		}
	}
	return false
}

// MayAny reports whether the client has right r to any lock at all.
func (c *Client) MayAny(r Right) bool {
	for _, rule := range c.rules {
		if rule.rights&r == r {
			return true
		}
	}
	return false
}

type key struct{}

// With returns a context that carries c.
func With(ctx context.Context, c *Client) context.Context { return context.WithValue(ctx, key{}, c) }

// Of returns the client whose request ctx belongs to. Without one, it may do nothing.
func Of(ctx context.Context) *Client {
	if c, ok := ctx.Value(key{}).(*Client); ok {
		return c
	}
	return &Client{}
}
