package redisstore

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// change is a deliberate mistake in a script.
type change struct {
	name     string
	script   *script.Script
	old, new string
	hidden   bool // on simredis
	timed    bool // where the clock cannot be set
	of       renewal
}

// renewal says in which renewals a mistake shows.
type renewal uint8

const (
	both    renewal = iota
	single          // of one lease
	bundles         // of several at once
)

// made returns a scripted.change that makes the mistake in the script's text.
func (c change) made(t *testing.T) func(text string) string {
	t.Helper()
	whole := c.script.Text()
	if strings.Count(whole, c.old) != 1 {
		t.Fatalf("%q does not occur exactly once in the script", c.old)
	}
	changed := strings.Replace(whole, c.old, c.new, 1)
	return func(text string) string {
		if text == whole {
			return changed
		}
		return text
	}
}

// noticesAll checks that find, which looks for a difference in what n does, finds one with
// each of the mistakes.
func noticesAll(t *testing.T, n *scripted, mistakes []change, find func() error) {
	for _, c := range mistakes {
		t.Run(c.name, func(t *testing.T) {
			n.change = c.made(t)
			if err := find(); err == nil {
				t.Error("the comparison does not notice the mistake")
			} else {
				t.Log(err)
			}
		})
	}
}
